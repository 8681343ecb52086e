"""The sentences on a watched job that no test of a decision has."""

from __future__ import annotations

import pytest

from ncclcheck.measure.watching.decision_text import ranks_words, sentence_on
from ncclcheck.model.job.watched import Watch, WatchedRank


@pytest.mark.parametrize(
    ("ranks", "words"), [((3,), "rank 3"), ((0, 1, 2, 5), "ranks 0-2, 5"), ((7, 6), "ranks 6-7")]
)
def test_ranks_are_folded(ranks: tuple[int, ...], words: str) -> None:
    assert ranks_words(ranks) == words


def test_who_died_first_is_told_with_those_that_failed_after_it() -> None:
    died = Watch("died", culprits=(WatchedRank(1, "b", 9, reason="was killed by SIGKILL"),), victims=(0, 2))
    assert (
        sentence_on(died)
        == "rank 1 on b (pid 9) was killed by SIGKILL, first of all ranks; ranks 0, 2 failed after it"
    )


def test_of_a_rank_that_died_alone_nothing_is_said_of_the_others() -> None:
    alone = Watch("died", culprits=(WatchedRank(1, "b", 9, reason="was killed by SIGKILL"),))
    assert sentence_on(alone) == "rank 1 on b (pid 9) was killed by SIGKILL"


def test_a_stopped_rank_is_told() -> None:
    stopped = Watch("stopped", culprits=(WatchedRank(1, "b", 9, reason="is stopped"),))
    assert sentence_on(stopped) == "rank 1 on b (pid 9) is stopped: the other ranks will wait for it"
    assert sentence_on(Watch("ok")) == "the job advances"
