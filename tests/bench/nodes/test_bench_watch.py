"""What node 0 makes of the words of nodes about their workers: a result, a culprit, or neither."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import get_args

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import DEADLINES, Deadlines
from ncclcheck.bench.nodes.bench_order import BenchOrder, Left
from ncclcheck.bench.nodes.bench_watch import BenchWatch
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.remaining import TimeLeft
from ncclcheck.model.bench import BenchPlan, BenchResult, CoreSpeed, Isolation, NodeLog, RankFailure
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.codec import encode
from ncclcheck.model.events import LogPosition, Process
from ncclcheck.model.fact import Missing
from tests.bench.nodes.benches import POINT, rank, watched, word

pytestmark = pytest.mark.slow
BUSY = {"phase": "measuring", "inside": True}
PLAN = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 1, 2, 5.0, True)
ORDER = BenchOrder(PLAN, 2, ("node01", "node02"), {"11": 0, "12": 1}, {"11": 1, "12": 1}, {}, "n", 30.0)
NETWORK = BenchNetwork("gloo", {"node01": 1, "node02": 1}, {}, {}, "a test")


def watch(
    store: Store, say: Callable[[str], None] = lambda _: None, deadlines: Deadlines | None = None
) -> BenchWatch:
    return BenchWatch(watched(store, ORDER, NETWORK, say), deadlines=deadlines or DEADLINES)


def say_words(store: Store, *words: bytes) -> None:
    for ticket, text in zip((11, 12), words, strict=True):
        store.set(f"bench/state/{ticket}", text)


def result_of(store: Store, say: Callable[[str], None] = lambda _: None) -> BenchResult:
    return watch(store, say).until(Deadline(30))


@pytest.mark.parametrize("left", get_args(Left)[1:])
def test_node_timeout_blames_nobody_and_an_interrupt_blames_its_node(store: Store, left: Left) -> None:
    say_words(store, word(rank(0, **BUSY)), word(rank(1, **BUSY), left=left))
    result = result_of(store)
    assert [failure.host for failure in result.failures] == (["node02"] if left == "interrupted" else [])
    assert ("--timeout of node02 was over" in result.unfinished) is (left == "timeout")


def test_a_point_that_is_none_is_refused_and_said_once(store: Store) -> None:
    store.set_document("bench/point/0", b"{}")
    say_words(store, word(rank(0, **BUSY), points=1), word(rank(1, **BUSY), left="timeout"))
    said: list[str] = []
    assert result_of(store, said.append).points == ()
    assert len([text for text in said if "a point of the benchmark was refused" in text]) == 1


def test_pause_of_node_0_does_not_make_other_ranks_silent(store: Store) -> None:
    say_words(store, word(rank(0, phase="joining", inside=True)), word(rank(1, phase="joining", inside=True)))
    watched_run = watch(store, deadlines=replace(DEADLINES, lost_s=0.6))
    assert watched_run.look() == ()
    threading.Event().wait(0.7)  # as if the whole machine had stood still
    assert watched_run.look() == ()
    assert watched_run.until(Deadline(30)).failures != ()


def test_a_pause_of_node_0_lets_no_victim_of_a_dead_node_be_accused(store: Store) -> None:
    """node02 died while node 0 stood still, and node01 says since when it has lost it: before node02 spoke again."""
    say_words(store, word(rank(0, **BUSY)), word(rank(1, **BUSY)))
    at = watch(store, deadlines=replace(DEADLINES, settle_s=0.2, lost_s=2.0))
    assert at.look() == ()
    threading.Event().wait(1.5)
    echo = {"error_kind": "communication", "error": "Connection closed by peer", "ended_s": 1.2}
    say_words(store, word(rank(0, **BUSY, **echo), sequence=2), word(rank(1, **BUSY), sequence=2))
    assert at.look() == (), "the last word of node02 may be from before its death"
    for _ in range(8):
        threading.Event().wait(0.1)
        assert at.look() == ()
    echo["ended_s"] = 2.0
    say_words(store, word(rank(0, **BUSY, **echo), sequence=3), word(rank(1, **BUSY), sequence=2))
    assert at.look() == ()
    say_words(store, word(rank(0, **BUSY, **echo), sequence=3), word(rank(1, **BUSY), sequence=3))
    (failure,) = at.look()
    assert (failure.host, failure.state) == ("node01", "error"), "node02 lives, and says nothing is wrong"


def test_a_node_whose_words_are_refused_is_not_accused_and_the_refusal_is_said_once(store: Store) -> None:
    say_words(store, word(rank(0, phase="joining", inside=True)), b'{"schema_version":"9"}')
    said: list[str] = []
    result = watch(store, said.append, replace(DEADLINES, lost_s=3.5, first_word_s=3.5)).until(Deadline(30))
    assert result.failures == (), "whoever reaches the store may have written that"
    assert result.unfinished.startswith("a word of node02 about its workers was refused")
    refusals = [text for text in said if "refused" in text]
    assert len(refusals) == 1
    assert refusals[0].startswith("a word of node02 about its workers was refused: schema version '9'")


def test_a_look_names_who_spoils_it_by_the_deadlines_it_was_given(store: Store) -> None:
    joining = {"phase": "joining", "inside": True, "idle_s": 5.0}
    say_words(store, word(rank(0, **joining)), word(rank(1, **joining)))
    assert watch(store).look() == ()
    stuck = watch(store, deadlines=Deadlines(join_s=4.0)).look()
    assert [(failure.host, failure.state, failure.where) for failure in stuck] == [
        ("node01", "stuck", "joining the group"),
        ("node02", "stuck", "joining the group"),
    ]


def test_where_the_ranks_were_is_known_after_their_node_left_and_the_others_are_told_to_end(
    store: Store,
) -> None:
    at = watch(store)
    say_words(store, word(rank(0)), word(rank(1), points=0))
    assert at.look() == ()
    assert {state.rank for state in at.states()} == {0, 1}
    assert set(at.speaking()) == {11, 12}
    at.stop()
    assert store.get("bench/stop") == b"1"
    store.set_document(at.done_key(12), encode(POINT))
    assert store.get_document("bench/done/12") == encode(POINT)


def test_the_nccl_logs_of_the_nodes_are_read_once_their_workers_have_ended(store: Store) -> None:
    """What came, what did not, and what cannot be read; hosts are called as node 0 calls them."""
    order = replace(ORDER, plan=replace(ORDER.plan, backend="nccl"))
    of_nccl = BenchWatch(watched(store, order, NETWORK))
    process = Process("another name", 7, LogPosition("rank-0", 1), rank=0, ranks=2, network="IB")
    store.set_document("bench/log/11", encode(NodeLog("", (process,))))
    first, second = of_nccl.with_logs(of_nccl.result(())).logs
    assert first == NodeLog("node01", (replace(process, host="node01"),))
    assert second == NodeLog("node02", Missing("absent", "its NCCL log did not come"))
    store.set_document("bench/log/12", b"[1, 2")
    refused = of_nccl.with_logs(of_nccl.result(())).logs[1].processes
    assert isinstance(refused, Missing)
    assert "was refused" in refused.detail
    gloo = BenchWatch(watched(store, ORDER, NETWORK))
    assert gloo.with_logs(gloo.result(())).logs == ()


def test_how_far_it_is_is_that_of_the_rank_ahead_once_all_are_there(store: Store) -> None:
    say_words(store, word(rank(0, **BUSY)), word(rank(1, phase="starting", iteration=0)))
    watched_run = watch(store)
    watched_run.look()
    assert watched_run.standing() == TimeLeft("starting (importing torch, allocating buffers)", 0, 1, None)
    say_words(
        store, word(rank(0, **BUSY), sequence=2), word(rank(1, **BUSY, iteration=1, calls=9), sequence=2)
    )
    watched_run.look()
    standing = watched_run.standing()
    assert (standing.where, standing.points, standing.of_points) == ("all_reduce 1M, iteration 3", 0, 1)
    assert standing.left_s is not None


@pytest.mark.parametrize("read", [True, False])
def test_what_ranks_do_by_themselves_is_in_the_result_or_refused_and_said(store: Store, read: bool) -> None:
    found = Isolation((CoreSpeed(0, "node01", 25.0, 24.0), CoreSpeed(1, "node02", 26.0, 24.0)))
    store.set_document("bench/point/0", encode(POINT))
    store.set_document("bench/isolation", encode(found) if read else b"[1]")
    say_words(store, word(rank(0), points=1), word(rank(1)))
    said: list[str] = []
    result = result_of(store, said.append)
    assert result.isolation == (found if read else Isolation())
    assert any("measured of single ranks was refused" in text for text in said) is not read


def test_where_only_the_comparison_of_single_ranks_is_missing_at_the_end_the_plan_was_done(
    store: Store,
) -> None:
    store.set_document("bench/point/0", encode(POINT))
    isolating = {"phase": "isolating", "inside": True}
    say_words(store, word(rank(0, **isolating), points=1), word(rank(1, **isolating), left="timeout"))
    result = result_of(store)
    assert (len(result.points), result.unfinished, result.failures) == (1, "", ())


def watch_of_two_processes(store: Store) -> BenchWatch:
    """Two processes on node01 and one on node02, with a rank each."""
    ranks = ("node01", "node01", "node02")
    order = replace(
        ORDER,
        plan=replace(PLAN, backend="nccl"),
        world_size=3,
        hosts=ranks,
        first_rank={"11": 0, "12": 1, "13": 2},
        count={"11": 1, "12": 1, "13": 1},
    )
    network = BenchNetwork("nccl", {"node01": 2, "node02": 1}, {}, {}, "a test")
    given = replace(watched(store, order, network), hosts={11: "node01", 12: "node01", 13: "node02"})
    return BenchWatch(given, deadlines=replace(DEADLINES, lost_s=1.5, first_word_s=1.5))


def test_a_task_that_went_silent_is_named_and_not_the_others_of_its_node(store: Store) -> None:
    there = watch_of_two_processes(store)
    deadline = Deadline(20)
    failures: tuple[RankFailure, ...] = ()
    sequence = 0
    while not failures and not deadline.passed:
        sequence += 1
        for ticket, number, host in ((11, 0, "node01"), (13, 2, "node02")):
            store.set(f"bench/state/{ticket}", word(rank(number, host=host, **BUSY), sequence=sequence))
        failures = there.look()
        threading.Event().wait(0.1)
    assert [(failure.rank, failure.host, failure.state) for failure in failures] == [(1, "node01", "lost")]
    assert "no word from the process that started it" in failures[0].detail
    assert there.result(failures).nodes == 2


def test_the_logs_of_the_tasks_of_a_node_are_one(store: Store) -> None:
    process = Process("node01", 7, LogPosition("rank-0", 1))
    store.set_document("bench/log/11", encode(NodeLog("", (process,))))
    store.set_document("bench/log/12", encode(NodeLog("", (replace(process, pid=8),))))
    there = watch_of_two_processes(store)
    logs = there.with_logs(there.result(())).logs
    assert [log.host for log in logs] == ["node01", "node02"]
    assert not isinstance(logs[0].processes, Missing)
    assert len(logs[0].processes) == 2
