"""NC804 bench-below-floor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.bench.bench_below_floor import points_of
from ncclcheck.model.bench import BenchPlan, BenchResult, Op, Point
from ncclcheck.model.bench_demands import BenchDemands, parse_floor
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_point, bench_result, with_bench
from tests.builders import cluster, with_interfaces
from tests.checks.bench.nccl_runs import IB, nccl_point, node_log, with_nccl_bench
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface
from tests.hardware_builders import rdma_cluster
from tests.probe_builders import timed_probes

SLUG = "bench-below-floor"
M, G = 1 << 20, 1 << 30


def point(op: Op, size_bytes: int, busbw_gb_s: float) -> Point:
    return replace(bench_point(size_bytes, (0.0, 0.0)), op=op, busbw_gb_s=busbw_gb_s)


def measured(*points: Point, plan: BenchPlan | None = None) -> BenchResult:
    ops = tuple(dict.fromkeys(one.op for one in points))
    sizes = tuple(dict.fromkeys(one.size_bytes for one in points))
    return bench_result(*points, plan=plan or BenchPlan("gloo", ops, sizes, "float32", 5, None, 20.0, True))


def demanding(bench: BenchResult, *rules: str, snapshot: Snapshot | None = None) -> Snapshot:
    floors = tuple(parse_floor(rule) for rule in rules)
    return replace(snapshot or cluster(2), bench=bench, bench_demands=BenchDemands(floors))


FOUR = (
    point("all_reduce", M, 0.1),
    point("all_reduce", G, 300.0),
    point("all_gather", M, 0.2),
    point("all_gather", G, 200.0),
)


@pytest.mark.parametrize(
    ("rule", "points"),
    [
        ("1", {("all_reduce", G), ("all_gather", G)}),
        ("all_gather=1", {("all_gather", G)}),
        ("@1M=1", {("all_reduce", M), ("all_gather", M)}),
        ("all_reduce@1M=1", {("all_reduce", M)}),
        ("reduce=1", set()),
        ("@2M=1", set()),
    ],
)
def test_which_points_a_rule_speaks_of(rule: str, points: set[tuple[str, int]]) -> None:
    found = points_of(measured(*FOUR), parse_floor(rule))
    assert {(one.op, one.size_bytes) for one in found} == points


def test_a_size_that_was_cut_down_for_all_ranks_is_found_by_the_one_that_was_asked_for() -> None:
    plan = BenchPlan("gloo", ("all_gather",), (100, 1000), "float32", 5, None, 20.0, True)
    bench = measured(point("all_gather", 96, 1.0), point("all_gather", 960, 1.0), plan=plan)
    assert [one.size_bytes for one in points_of(bench, parse_floor("@1000=1"))] == [960]
    assert [one.size_bytes for one in points_of(bench, parse_floor("1"))] == [960]


def test_floors_that_are_reached_are_silent() -> None:
    assert is_silent(SLUG, demanding(measured(*FOUR), "200", "all_reduce=300", "all_reduce@1M=0.1"))


def test_each_floor_that_is_missed_is_an_error_of_its_own() -> None:
    found = run(SLUG, demanding(measured(*FOUR), "250", "all_reduce=299", "@1M=0.15")).findings
    assert [one.severity for one in found] == ["error", "error"]
    assert found[0].summary.startswith("below the floor 250.0: all_gather of 1G 200.0 GB/s (80% of it)")
    assert found[1].summary.startswith("below the floor @1M=0.150: all_reduce of 1M 0.100 GB/s")


def test_a_fine_mean_does_not_hide_one_size() -> None:
    points = [point("all_reduce", M << bits, 100.0) for bits in range(9)] + [point("all_reduce", G, 40.0)]
    assert "40.0" in finding(SLUG, demanding(measured(*points), "90")).summary


def test_a_rule_that_matches_nothing_is_not_known_never_passed() -> None:
    result = run(SLUG, demanding(measured(*FOUR), "reduce@1M=0.001", "all_reduce@2M=0.001"))
    assert result.outcome == "unknown"
    assert "matches nothing that was measured: no reduce at 1M" in result.reason
    assert "no all_reduce at 2M" in result.reason


def test_what_was_planned_and_not_measured_is_not_known() -> None:
    plan = BenchPlan("gloo", ("all_reduce",), (M, G), "float32", 5, None, 20.0, True)
    result = run(SLUG, demanding(measured(point("all_reduce", M, 500.0), plan=plan), "1"))
    assert result.outcome == "unknown"


def test_one_rank_has_no_bus_bandwidth() -> None:
    alone = replace(measured(point("all_reduce", M, 0.0)), world_size=1)
    assert "one rank" in run(SLUG, demanding(alone, "1")).reason


def h100s(busbw_gb_s: float, *rules: str) -> Snapshot:
    """Two nodes of eight H100 with eight cards of 400 Gbit/s."""
    logs = [node_log(f"node0{node + 1}", *range(8 * node, 8 * node + 8), of=16, **IB) for node in range(2)]
    measured_point = nccl_point("all_reduce", G, busbw_gb_s, 16, 2)
    snapshot = with_nccl_bench(rdma_cluster(2), *logs, points=(measured_point,), ranks=16)
    return replace(snapshot, bench_demands=BenchDemands(tuple(parse_floor(rule) for rule in rules)))


def test_a_floor_above_what_no_algorithm_exceeds_is_refused_as_impossible() -> None:
    found = finding(SLUG, h100s(437.0, "800"))
    assert (
        "the floor 800.0 is rejected as impossible: no algorithm gets all_reduce above 750" in found.summary
    )
    assert "measured at 437.0 GB/s" in found.summary


def test_a_floor_that_was_measured_is_never_refused() -> None:
    assert is_silent(SLUG, h100s(882.0, "850"))


def test_a_floor_that_can_be_met_is_judged_and_the_binding_link_told() -> None:
    found = finding(SLUG, h100s(300.0, "440"))
    assert "the bottleneck is 18 NVLinks of 20.6 GB/s per GPU, which allows 370.8 GB/s" in found.summary
    assert is_silent(SLUG, h100s(450.0, "440"))


def test_above_a_measured_bandwidth_it_says_that_no_setting_helps() -> None:
    snapshot = cluster(2)
    for rank, node in enumerate(snapshot.nodes):
        veth = interface("veth0", f"10.0.0.{rank + 1}/24", kind="virtual", tunnel="veth")
        snapshot = with_interfaces(snapshot, node.host, veth)
    places = {"node01": ("veth0", "10.0.0.1"), "node02": ("veth0", "10.0.0.2")}
    probes = tuple(replace(probe, interface="veth0") for probe in timed_probes(2, gbit_s=0.95))
    bench = replace(measured(point("all_reduce", 16 * M, 0.117)), world_size=2, places=places)
    found = finding(SLUG, demanding(bench, "300", snapshot=replace(snapshot, probes=probes)))
    assert "Gbit/s to veth0 of node0" in found.summary
    assert "so no setting is likely to reach the floor" in found.summary


def test_without_a_floor_or_a_benchmark_the_question_does_not_arise() -> None:
    assert (
        run(SLUG, replace(with_bench(cluster(2)), bench_demands=BenchDemands())).outcome == "not_applicable"
    )
    floors = BenchDemands((parse_floor("1"),))
    assert run(SLUG, replace(cluster(2), bench_demands=floors)).outcome == "not_applicable"
    assert run(SLUG, replace(cluster(2), bench_demands=floors, bench=Missing("error"))).outcome == "unknown"
