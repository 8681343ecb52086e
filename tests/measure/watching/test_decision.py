"""What a job that stands still is, by the stacks of its ranks."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.measure.watching.decision import JobStudy, decide, decide_job, stands
from ncclcheck.measure.watching.decision_text import sentence_on
from ncclcheck.measure.watching.node_study import Studied
from ncclcheck.model.job.together import NodeStudy, RankStudy
from ncclcheck.model.job.watched import BlockedLink, Frame, Look, RankLook, WatchedRank
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
    assert sentence_on(watch) == (
        "the job hangs: rank 2 on node01 (pid 102) is at /home/me/train.py:33 in evaluate; nothing has advanced for "
        "70 s; ranks 0-1, 3 wait in all_reduce for it"
    )


def test_ranks_that_are_all_outside_are_quiet() -> None:
    watch = decide(_studied(LOADER, LOADER))
    assert watch.decision == "quiet"
    assert "no hang" in sentence_on(watch)


def test_a_stack_that_changed_is_no_hang() -> None:
    earlier = {100: ALL_REDUCE, 101: LOADER}
    assert decide(_studied(ALL_REDUCE, SLEEPING, first=earlier)).decision == "ok"


def test_ranks_that_wake_up_inside_a_collective_are_no_hang() -> None:
    after = _look(10, 2, switches={0: 2000, 1: 2000})
    assert decide(_studied(ALL_REDUCE, ALL_REDUCE, after=after)).decision == "ok"


def test_a_rank_that_computes_outside_is_quiet_and_one_that_polls_is_a_hang() -> None:
    computing = decide(_studied(ALL_REDUCE, SLEEPING, after=_look(10, 2, cpu_s={1: 60.0})))
    assert computing.decision == "quiet"
    assert "rank 1 on node01 (pid 101) computes at /home/me/train.py:33" in sentence_on(computing)
    polling = decide(_studied(ALL_REDUCE, SLEEPING, after=_look(10, 2, switches={1: 2000})))
    assert polling.decision == "hang"


def test_a_rank_that_computes_on_a_node_with_too_few_cores_is_quiet() -> None:
    starved = decide(
        _studied(
            ALL_REDUCE,
            SLEEPING,
            before=_look(0, 2, state={1: "R"}),
            after=_look(10, 2, state={1: "R"}, cpu_s={1: 52.0}),
        )
    )
    assert starved.decision == "quiet"
    asleep = decide(_studied(ALL_REDUCE, SLEEPING, after=_look(10, 2, cpu_s={1: 52.0})))
    assert asleep.decision == "hang"


def test_the_fewer_ranks_in_another_collective_are_the_culprits() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE, ALL_REDUCE, BARRIER))
    assert watch.decision == "hang"
    assert [culprit.rank for culprit in watch.culprits] == [3]
    assert "calls another collective (barrier)" in sentence_on(watch)


def test_all_ranks_of_the_world_in_one_call_are_a_hang_without_a_culprit() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE))
    assert (watch.decision, watch.culprits) == ("hang", ())
    assert "ranks 0-1 wait in all_reduce, all ranks in the same call" in sentence_on(watch)


def test_all_ranks_of_this_node_in_one_call_wait_for_another_node_which_is_no_finding_here() -> None:
    watch = decide(_studied(ALL_REDUCE, ALL_REDUCE, world_size=8))
    assert watch.decision == "quiet"
    assert "whoever they wait for is on another node" in sentence_on(watch)


def test_a_rank_that_ended_before_is_the_culprit() -> None:
    gone = WatchedRank(1, "node01", 77, reason="ended with exit code 0")
    watch = decide(_studied(ALL_REDUCE, world_size=2, ended=(gone,)))
    assert watch.decision == "hang"
    assert "rank 1 on node01 (pid 77) ended with exit code 0" in sentence_on(watch)


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


def test_the_odd_stack_out_comes_first() -> None:
    groups = decide(_studied(ALL_REDUCE, ALL_REDUCE, LOADER, ALL_REDUCE)).groups
    assert [(group.ranks, group.in_collective) for group in groups] == [((2,), False), ((0, 1, 3), True)]
    assert groups[0].frames == LOADER


def _node(number: int, *ranks: RankStudy, **changes: Any) -> NodeStudy:
    return NodeStudy(f"node{number}", ranks, **changes)


def _waits(rank: int, call: str = "all_reduce") -> RankStudy:
    return RankStudy(rank, 100 + rank, call, inside=True, call=call, at=JOB)


_SLEEPS = RankStudy(2, 102, "sleeping", at=SLEEPING[0])


def test_the_culprit_is_found_on_whichever_node_it_is() -> None:
    job = JobStudy((_node(1, _waits(0), _waits(1)), _node(2, _SLEEPS, _waits(3))))
    watch = decide_job(job)
    assert (watch.decision, [rank.host for rank in watch.culprits]) == ("hang", ["node2"])
    assert watch.victims == (0, 1, 3)
    assert watch.hosts == ("node1", "node2")


def test_one_rank_that_moves_anywhere_is_no_hang() -> None:
    moves = RankStudy(3, 103, "x", moved=True)
    assert decide_job(JobStudy((_node(1, _waits(0)), _node(2, moves)))).decision == "ok"


def test_who_calls_another_collective_is_found_over_all_nodes() -> None:
    nodes = [_node(number, *(_waits(8 * number + local) for local in range(8))) for number in range(3)]
    watch = decide_job(JobStudy((*nodes, _node(3, _waits(24, "barrier")))))
    assert [rank.rank for rank in watch.culprits] == [24]


def test_a_silent_node_is_named_where_all_others_wait() -> None:
    job = JobStudy((_node(1, _waits(0), _waits(1), world_size=4),), silent=("node2",))
    watch = decide_job(job)
    assert watch.decision == "hang"
    assert "node2 is not heard from" in sentence_on(watch)


def test_ranks_a_call_apart_are_no_culprits_where_a_node_is_silent_or_the_network_holds_bytes() -> None:
    apart = (_node(1, _waits(0, "broadcast"), world_size=3), _node(2, _waits(1, "all_reduce"), world_size=3))
    watch = decide_job(JobStudy(apart, silent=("node3",)))
    assert (watch.decision, watch.culprits, watch.victims) == ("hang", (), (0, 1))
    assert (
        "ranks 0-1 wait in broadcast or all_reduce, all ranks that can be seen in a collective"
        in sentence_on(watch)
    )
    assert "node3 is not heard from" in sentence_on(watch)
    link = BlockedLink("node1", "node3", 0, 48, 5, heard=False)
    blocked = (replace(apart[0], blocked=(link,)), apart[1], _node(3, _waits(2, "broadcast"), world_size=3))
    watch = decide_job(JobStudy(blocked))
    assert (watch.decision, watch.culprits) == ("hang", ())
    assert "48 bytes from node1 to node3 are not acknowledged" in sentence_on(watch)


def test_bytes_that_are_not_acknowledged_are_a_hang_of_the_network() -> None:
    link = BlockedLink("node1", "node2", 0, 4096, 5, heard=True)
    watch = decide_job(JobStudy((_node(1, _waits(0), world_size=4, blocked=(link,)),)))
    assert watch.decision == "hang"
    assert "packets from node1 to node2 get lost" in sentence_on(watch)


def test_16384_ranks_are_decided_in_seconds() -> None:
    stacks = {"all_reduce": ALL_REDUCE, "sleeping": SLEEPING}
    nodes = [
        _node(number, *(_waits(8 * number + local) for local in range(8)), stacks=stacks)
        for number in range(2047)
    ]
    job = JobStudy((*nodes, _node(2047, *(_waits(16376 + local) for local in range(7)), _SLEEPS)))
    tracemalloc.start()
    began = time.process_time()
    watch = decide_job(job)
    seconds = time.process_time() - began
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [rank.host for rank in watch.culprits] == ["node2047"]
    assert len(watch.victims) == 16383
    assert seconds < 5
    assert peak_bytes < 1 << 30
    assert len(sentence_on(watch)) < 1000
