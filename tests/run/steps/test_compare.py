"""What a comparison of as-is and advised shows, and when there is none to be made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ncclcheck.advice.compared import AsIsAndAdvised
from ncclcheck.bench.nodes.ab_benchmark import SIZES, AbBenchmark, WorkerSet
from ncclcheck.bench.nodes.ab_result import result_of
from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.bench_watch import BenchWatch
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.bench import BenchPlan, Comparison, ComparisonVerdict, Variant
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.steps.compare import lead_comparison
from ncclcheck.timeouts import AFTER_COMPARE_S, LEAST_COMPARE_S
from tests.advice.clusters import two_networks, with_bandwidth
from tests.bench.nodes.benches import session, watched
from tests.builders import cluster, with_silent
from tests.fact_builders import launch

pytestmark = pytest.mark.slow
PLAN = BenchPlan("gloo", ("all_reduce",), SIZES, "float32", 1, None, 5.0, verify=False)
ORDER = BenchOrder(
    PLAN, 2, ("node01", "node02"), {"11": 0, "12": 1}, {"11": 1, "12": 1}, {}, "n", 30.0, "advised"
)
NETWORK = BenchNetwork("gloo", {"node01": 1, "node02": 1}, {}, {}, "a test")
TWO = AsIsAndAdvised(
    {"node01": {"NCCL_SOCKET_IFNAME": "eth1"}, "node02": {"NCCL_SOCKET_IFNAME": "eth1"}},
    "NCCL",
    {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")},
    {"node01": ("eth1", "10.0.1.1"), "node02": ("eth1", "10.0.1.2")},
)


def side(
    store: Store, times_us: Sequence[float], failure: str = "", *, by_accident: bool = False
) -> WorkerSet:
    made = WorkerSet(store, BenchWatch(watched(store, ORDER, NETWORK)), ORDER)
    made.times_us += times_us
    if failure:
        made.end(failure, by_accident=by_accident)
    return made


def shown(as_is: WorkerSet, advised: WorkerSet) -> Comparison:
    ab_benchmark = AbBenchmark([as_is, advised], Deadline(10))
    ab_benchmark.size_bytes = 1 << 20
    return result_of(ab_benchmark, Variant({}, TWO.as_is), Variant(TWO.changes, TWO.advised))


def test_times_of_both_give_the_speedup_with_its_interval_and_the_bus_bandwidth_of_each(
    store: Store,
) -> None:
    found = shown(side(store, [80e3, 82e3, 81e3, 79e3] * 2), side(store, [8e3] * 8))
    assert (found.verdict, found.rounds, found.size_bytes) == ("faster", 8, 1 << 20)
    assert found.speedup == pytest.approx(10.06, abs=0.01)
    assert (found.speedup_low, found.speedup_high) == (79 / 8, 82 / 8)
    assert found.advised.busbw_gb_s == pytest.approx((1 << 20) / 8e3 / 1e3)  # two ranks: the factor is 1
    assert (found.as_is.changes, found.advised.changes) == ({}, TWO.changes)
    assert (found.as_is.places, found.advised.places) == (TWO.as_is, TWO.advised)
    assert (found.as_is.failure, found.advised.failure) == ("", "")


@pytest.mark.parametrize(
    ("as_is", "advised", "verdict"),
    [
        (([8e3] * 8, ""), ([8e3] * 8, ""), "no effect"),
        (([8e3] * 8, ""), ([80e3] * 8, ""), "slower"),
        (([], "stuck"), ([8e3] * 6, ""), "as-is failed"),
        (([8e3] * 6, ""), ([], "stuck"), "advised failed"),
        (([], "stuck"), ([], "stuck"), "both failed"),
        (([8e3] * 5, ""), ([4e3] * 5, ""), "not measured"),
        (([8e3] * 2, "stuck"), ([8e3] * 8, ""), "as-is failed"),
    ],
)
def test_the_verdict_follows_from_the_times_and_failures(
    store: Store,
    as_is: tuple[list[float], str],
    advised: tuple[list[float], str],
    verdict: ComparisonVerdict,
) -> None:
    found = shown(side(store, *as_is), side(store, *advised))
    assert found.verdict == verdict
    assert (found.speedup is None) == (verdict not in ("no effect", "slower", "faster"))
    for variant in (found.as_is, found.advised):
        assert bool(variant.failure) != bool(variant.times_us)


def test_an_accident_proves_nothing_unless_enough_was_measured_before(store: Store) -> None:
    killed = side(store, [], "rank 0 on node01: died", by_accident=True)
    found = shown(killed, side(store, [8e3] * 6))
    assert (found.verdict, found.as_is.failure) == ("not measured", "rank 0 on node01: died")
    interrupted = side(store, [80e3] * 7, "interrupted", by_accident=True)
    assert shown(interrupted, side(store, [8e3] * 6, "interrupted", by_accident=True)).rounds == 6
    late = shown(interrupted, side(store, [8e3] * 6, "interrupted", by_accident=True))
    assert (late.verdict, late.speedup) == ("faster", 10.0)


def slow_first() -> Snapshot:
    return with_bandwidth(two_networks(2), eth0=1.0, eth1=10.0)


def led(store: Store, snapshot: Snapshot, seconds: float = 60.0) -> Fact[Comparison]:
    return lead_comparison(session(store, snapshot, seconds))


@pytest.mark.parametrize(
    ("snapshot", "seconds", "missing", "why"),
    [
        (two_networks(2), 60.0, "absent", "nothing is advised, so there is nothing to compare"),
        (slow_first(), LEAST_COMPARE_S + AFTER_COMPARE_S - 2, "timeout", "s were left of --timeout"),
        (with_silent(slow_first(), "node02"), 60.0, "unsupported", "silent: node02"),
        (replace(slow_first(), claims=(launch(0, 2),) * 2), 60.0, "unsupported", "node ranks clash"),
        (cluster(1), 60.0, "absent", "nothing is advised"),
    ],
    ids=["nothing", "late", "silent", "clash", "one-node"],
)
def test_what_cannot_be_compared_says_why_and_starts_nothing(
    store: Store, snapshot: Snapshot, seconds: float, missing: str, why: str
) -> None:
    found = led(store, snapshot, seconds)
    assert isinstance(found, Missing)
    assert found.missing == missing
    assert why in found.detail
    assert isinstance(store.get("step/0"), Missing)
