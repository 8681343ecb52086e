"""Two sets of real workers on loopback take turns; one that cannot work does not hold up the other."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import Deadlines
from ncclcheck.bench.nodes.ab_benchmark import (
    LEAST_ROUNDS,
    ROUNDS,
    ROUNDS_ALONE,
    SIZES,
    AbBenchmark,
    WorkerSet,
)
from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.bench_watch import BenchWatch, Watched
from ncclcheck.bench.nodes.node_workers import run_workers
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.run.steps.bench import stop_workers
from tests.bench.nodes.benches import client, context, session, worker_node
from tests.builders import cluster
from tests.fact_builders import launch

pytestmark = pytest.mark.slow
PLAN = BenchPlan("gloo", ("all_reduce",), SIZES, "float32", 1, None, 5.0, verify=False)
PLACE = replace(launch(0, 1), nproc_per_node=2, master_addr="127.0.0.1")
AGENT = Member(11, PLACE, "node01")
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"}


def order(name: str, environment: Mapping[str, str]) -> BenchOrder:
    return BenchOrder(
        PLAN,
        2,
        ("node01", "node01"),
        {"11": 0},
        {"11": 2},
        {"11": dict(environment)},
        f"nonce-{name}",
        60.0,
        name="as-is" if name == "as-is" else "advised",
        turns=True,
    )


def side(store: Store, order: BenchOrder) -> WorkerSet:
    network = BenchNetwork("gloo", {"node01": 2}, {}, {}, "a test")
    quick = Deadlines(join_s=8.0, first_call_s=8.0)
    watch = BenchWatch(Watched(store, {11: "node01"}, order, network), deadlines=quick)
    return WorkerSet(store, watch, order)


@contextmanager
def ab_benchmark(
    server: Store, prefix: str, as_is: Mapping[str, str], seconds: float = 60
) -> Iterator[AbBenchmark]:
    """An A/B benchmark whose workers run in this process's node, and are gone after it."""
    at = replace(context(), launch=replace(PLACE, job_id=f"contest-{prefix}"))
    store, theirs = client(server, at.prefix), client(server, at.prefix)
    orders = (order("as-is", as_is), order("advised", LOOPBACK))
    sides = [side(store, order) for order in orders]
    node = threading.Thread(
        target=run_workers, args=(worker_node(at, theirs, 11), orders), name="node", daemon=True
    )
    node.start()
    try:
        yield AbBenchmark(sides, Deadline(seconds))
    finally:
        stop_workers(session(store, cluster(1), agents=(AGENT,), at=at), [side.watch for side in sides])
        node.join(20)
        assert not node.is_alive()
        assert all(store.get_document(f"{order.name}/done/11") == b"[]" for order in orders)


@pytest.mark.alone  # times are compared
def test_both_measure_as_often_in_turns_and_the_same_thing_twice_takes_about_as_long(
    server: Store, prefix: str
) -> None:
    with ab_benchmark(server, prefix, LOOPBACK) as both:
        both.measure()
    first, second = both.sides
    assert (first.failure, second.failure) == ("", "")
    assert len(first.times_us) == len(second.times_us)
    assert LEAST_ROUNDS <= len(first.times_us) <= ROUNDS
    assert both.size_bytes in SIZES
    assert 0.3 < sorted(first.times_us)[4] / sorted(second.times_us)[4] < 3.0


@pytest.mark.further
def test_one_that_cannot_form_its_group_is_ended_with_the_reason_and_the_other_measures_alone(
    server: Store, prefix: str
) -> None:
    with ab_benchmark(server, prefix, {"GLOO_SOCKET_IFNAME": "nothere0"}) as both:
        both.measure()
    failed, works = both.sides
    assert "joining the group" in failed.failure
    assert "nothere0" in failed.failure
    assert not failed.by_accident
    assert (failed.times_us, works.failure, len(works.times_us)) == ([], "", ROUNDS_ALONE)


def test_a_killed_worker_is_an_accident_and_no_fault_of_its_environment(server: Store, prefix: str) -> None:
    with ab_benchmark(server, prefix, LOOPBACK) as both:
        first, second = both.sides
        kill_when_ready = threading.Thread(target=_kill_one, args=(first,), daemon=True)
        kill_when_ready.start()
        both.measure()
        kill_when_ready.join(10)
    assert "SIGKILL" in first.failure
    assert first.by_accident
    assert (second.failure, second.by_accident) == ("", False)


def _kill_one(side: WorkerSet) -> None:
    deadline = Deadline(40)
    while not side.ready and not deadline.passed:
        threading.Event().wait(0.02)
    os.kill(side.watch.states()[0].pid, signal.SIGKILL)


def test_when_the_time_is_over_neither_is_to_blame(server: Store, prefix: str) -> None:
    with ab_benchmark(server, prefix, LOOPBACK, seconds=0.5) as both:
        both.measure()
    assert [(side.failure, side.by_accident, side.times_us) for side in both.sides] == [
        ("the time was over", True, [])
    ] * 2
