"""What a job that stands still is, by the stacks of its ranks."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.measure.watching.decision import decide, stands
from ncclcheck.measure.watching.node_study import Studied
from ncclcheck.measure.watching.words import told
from ncclcheck.model.job.watched import Frame, Look, RankLook, WatchedRank
from tests.measure.watching.test_stacks import ALL_REDUCE, JOB, LOADER

BARRIER = (Frame(ALL_REDUCE[0].file, 5000, "barrier"), *ALL_REDUCE[1:])
SLEEPING = (Frame("/home/me/train.py", 33, "evaluate"), JOB)


def _look(at_s: float, count: int, **changes: dict[int, Any]) -> Look:
    def value(name: str, rank: int, usual: Any) -> Any:
        return changes.get(name, {}).get(rank, usual)

    return Look(
        at_s,
        tuple(
            RankLook(
                rank,
                100 + rank,
                value("state", rank, "S"),
                value("cpu_s", rank, 50.0),
                value("switches", rank, 1000),
                value("io_bytes", rank, 10_000),
            )
            for rank in range(count)
        ),
    )


def _studied(*stacks: tuple[Frame, ...], **changes: Any) -> Studied:
    by_pid = {100 + rank: frames for rank, frames in enumerate(stacks)}
    given: dict[str, Any] = {
        "before": _look(0, len(stacks)),
        "after": _look(10, len(stacks)),
        "first": by_pid,
        "second": by_pid,
        "still_s": 70.0,
        "world_size": len(stacks),
    }
    return Studied("node01", **{**given, **changes})


def test_the_rank_outside_is_the_culprit_with_its_line() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE, SLEEPING, ALL_REDUCE))
    assert watch.decision == "hang"
    (culprit,) = watch.culprits
    assert (culprit.rank, culprit.host, culprit.file, culprit.line) == (2, "node01", "/home/me/train.py", 33)
    assert watch.victims == (0, 1, 3)
    assert told(watch) == (
        "the job hangs: rank 2 on node01 (pid 102) is at /home/me/train.py:33 in evaluate; nothing has advanced for "
        "70 s; ranks 0-1, 3 wait in all_reduce for it"
    )


def test_ranks_that_are_all_outside_are_quiet() -> None:
    watch = decide(_studied(LOADER, LOADER))
    assert watch.decision == "quiet"
    assert "no hang" in told(watch)


def test_a_stack_that_changed_is_no_hang() -> None:
    earlier = {100: ALL_REDUCE, 101: LOADER}
    assert decide(_studied(ALL_REDUCE, SLEEPING, first=earlier)).decision == "ok"


def test_ranks_that_wake_up_inside_a_collective_are_no_hang() -> None:
    after = _look(10, 2, switches={0: 2000, 1: 2000})
    assert decide(_studied(ALL_REDUCE, ALL_REDUCE, after=after)).decision == "ok"


def test_a_rank_that_computes_outside_is_quiet_and_one_that_polls_is_a_hang() -> None:
    computing = decide(_studied(ALL_REDUCE, SLEEPING, after=_look(10, 2, cpu_s={1: 60.0})))
    assert computing.decision == "quiet"
    assert "rank 1 on node01 (pid 101) computes at /home/me/train.py:33" in told(computing)
    polling = decide(_studied(ALL_REDUCE, SLEEPING, after=_look(10, 2, switches={1: 2000})))
    assert polling.decision == "hang"


def test_the_fewer_ranks_in_another_collective_are_the_culprits() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE, ALL_REDUCE, BARRIER))
    assert watch.decision == "hang"
    assert [culprit.rank for culprit in watch.culprits] == [3]
    assert "calls another collective (barrier)" in told(watch)


def test_all_ranks_of_the_world_in_one_call_are_a_hang_without_a_culprit() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE))
    assert (watch.decision, watch.culprits) == ("hang", ())
    assert "ranks 0-1 wait in all_reduce, all ranks in the same call" in told(watch)


def test_all_ranks_of_this_node_in_one_call_wait_for_another_node_which_is_no_finding_here() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE, world_size=8))
    assert watch.decision == "quiet"
    assert "whoever they wait for is on another node" in told(watch)


def test_a_rank_that_ended_before_is_the_culprit() -> None:
    gone = WatchedRank(1, "node01", 77, reason="ended with exit code 0")
    watch = decide(_studied(ALL_REDUCE, world_size=2, ended=(gone,)))
    assert watch.decision == "hang"
    assert "rank 1 on node01 (pid 77) ended with exit code 0" in told(watch)


def test_without_stacks_nothing_is_claimed() -> None:
    watch = decide(_studied(ALL_REDUCE, LOADER, first={}, second={}, remarks=("no py-spy",)))
    assert watch.decision == "quiet"
    assert watch.remarks[0] == "no py-spy"
    assert "no stack could be read" in watch.remarks[1]


@pytest.mark.parametrize(("state", "words"), [("T", "is stopped"), ("D", "is stuck in the kernel")])
def test_a_stopped_rank_is_seen_at_once(state: str, words: str) -> None:
    seen = [_look(at_s, 2, state={1: state}) for at_s in (0, 5)]
    (rank,) = stands(seen[0], seen[1], "node01")
    assert rank.rank == 1
    assert words in rank.reason


def test_a_rank_that_reads_from_disk_is_not_stuck() -> None:
    before, after = (_look(at_s, 1, state={0: "D"}, io_bytes={0: int(at_s) * 1000}) for at_s in (0, 5))
    assert stands(before, after, "node01") == ()
