"""The text of `ncclras` in a log: who is behind, ahead, missing or dead."""

from __future__ import annotations

from ncclcheck.model.events import RankBehind, RankDiffers
from tests.checks.logs.explaining import assert_cause, explain, read
from tests.logs.ras_answers import COUNTS_2_24, COUNTS_2_28, HEAD, HEALTHY

_HEADER = HEAD.format(version="2.26.2", errors="MISMATCH") + "Warnings\n========\n\n"
_BELOW = "  Rank {rank} -- GPU 5 managed by process 323033 on node 10.1.2.3\n"


def test_ranks_with_fewer_operations_are_behind() -> None:
    log = read(COUNTS_2_24)
    behind = [event for event in log.events if isinstance(event, RankBehind)]
    assert [(event.place.rank, event.place.host, event.sequence) for event in behind] == [
        (0, "172.16.64.210", 6650),
        (2, "172.16.64.210", 6650),
    ]


def test_a_rank_on_a_line_of_its_own_is_behind_and_other_status_is_not() -> None:
    behind = [event for event in read(COUNTS_2_28).events if isinstance(event, RankBehind)]
    assert behind[0].place.rank == 7
    assert 5 not in {event.place.rank for event in behind}


def test_a_rank_with_more_operations_than_most_differs() -> None:
    text = (
        f"{_HEADER}#0-0 (fa93daea854b060b) MISMATCH\n"
        "  Communicator ranks have different AllGather operation counts\n"
        "  31 ranks have launched up to operation 640\n"
        "  1 ranks have launched up to operation 641\n" + _BELOW.format(rank=21)
    )
    differs = [event for event in read(text).events if isinstance(event, RankDiffers)]
    assert [event.place.rank for event in differs] == [21]
    assert_cause(text, "collective-mismatch", {"10.1.2.3", "rank 21"})


def test_a_missing_rank_is_the_culprit() -> None:
    text = f"{_HEADER}#0-1 (bcd8d1cbf5c3fd3f) INCOMPLETE\n  The missing rank: 9\n" + _BELOW.format(rank=9)
    assert_cause(text, "slow-rank-timeout", {"10.1.2.3", "rank 9"})


def test_a_healthy_answer_names_nobody() -> None:
    assert not [event for event in read(HEALTHY).events if isinstance(event, RankBehind | RankDiffers)]
    assert not [finding for finding in explain(HEALTHY).findings if finding.severity == "error"]


def test_a_line_of_a_rank_without_its_heading_tells_nothing() -> None:
    assert not [
        event for event in read(_BELOW.format(rank=3)).events if isinstance(event, RankBehind | RankDiffers)
    ]
