"""NC805 bench-below-baseline."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.bench import Point
from ncclcheck.model.bench_demands import BenchDemands
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import bench_demands, bench_point, bench_result, with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some

SLUG = "bench-below-baseline"
LATE = (3.0, 1.0, 4.0, 2.0)


def slower(point: Point, factor: float) -> Point:
    times = replace(
        point.time_us,
        **{name: factor * getattr(point.time_us, name) for name in ("mean", "min", "p50", "p95", "max")},
    )
    return replace(point, time_us=times, busbw_gb_s=point.busbw_gb_s / factor)


def compared(factors: dict[int, float], **changes: Any) -> Snapshot:
    """A run of ten sizes, some of them that much slower than in its baseline."""
    points = [bench_point(1 << bits, LATE) for bits in range(16, 26)]
    before = bench_result(*points)
    now = bench_result(*(slower(point, factors.get(point.size_bytes, 1.0)) for point in points))
    return replace(cluster(4), bench=replace(now, **changes), bench_demands=bench_demands(before))


def test_the_same_is_silent_and_so_is_what_the_tolerance_allows() -> None:
    assert is_silent(SLUG, compared({}))
    assert is_silent(SLUG, compared({1 << 20: 1.04}))


def test_a_loss_of_60_percent_at_one_size_is_found_though_the_mean_is_fine() -> None:
    found = finding(SLUG, compared({1 << 20: 2.5}))
    assert found.severity == "error"
    assert found.summary.startswith(
        "all_reduce is slower than in the baseline last.json of 2026-01-01T00:00:00+00:00 at 1 of 10 sizes: "
        "1M lost 60% (1.50 to 0.600 GB/s)"
    )
    assert "5% is tolerated" in found.summary
    assert "2500 us over 20 iterations" in found.evidence[0].observed
    assert "1000 us; noise explains a loss of" in found.evidence[0].expected


def test_a_greater_tolerance_allows_it() -> None:
    snapshot = compared({1 << 20: 1.3})
    assert run(SLUG, snapshot).outcome == "found"
    lenient = replace(snapshot.bench_demands, tolerance=0.5)
    assert is_silent(SLUG, replace(snapshot, bench_demands=lenient))


def test_other_conditions_are_not_known_never_passed() -> None:
    for changes, words in (
        ({"world_size": 8}, "4 ranks (now 8)"),
        ({"backend": "nccl"}, "gloo backend (now nccl)"),
        ({"nodes": 2}, "4 nodes (now 2)"),
    ):
        result = run(SLUG, compared({}, **changes))
        assert (result.outcome, words in result.reason) == ("unknown", True), result.reason


def test_points_without_a_counterpart_are_not_known() -> None:
    points = [bench_point(1 << bits, LATE) for bits in range(16, 20)]
    before = bench_result(*points[:2])
    snapshot = replace(cluster(4), bench=bench_result(*points), bench_demands=bench_demands(before))
    result = run(SLUG, snapshot)
    assert result.outcome == "unknown"
    assert "last.json does not have all_reduce of 256K float32, all_reduce of 512K float32" in result.reason
    other_type = replace(
        snapshot, bench=bench_result(*(replace(point, dtype="float16") for point in points[:2]))
    )
    assert "64K float16" in run(SLUG, other_type).reason


def test_too_few_iterations_are_not_known() -> None:
    snapshot = compared({})
    few = tuple(replace(point, iters=2) for point in some(snapshot.bench).points)
    assert "too few iterations" in run(SLUG, replace(snapshot, bench=bench_result(*few))).reason


def test_without_a_baseline_or_a_benchmark_the_question_does_not_arise() -> None:
    assert (
        run(SLUG, replace(with_bench(cluster(4)), bench_demands=BenchDemands())).outcome == "not_applicable"
    )
    demands = bench_demands(bench_result())
    assert run(SLUG, replace(cluster(4), bench_demands=demands)).outcome == "not_applicable"
    assert run(SLUG, replace(cluster(4), bench_demands=demands, bench=Missing("error"))).outcome == "unknown"


def test_another_transport_than_then_is_part_of_the_evidence() -> None:
    found = finding(SLUG, compared({1 << 20: 2.5}, transport="gloo over TCP on eth1"))
    last = found.evidence[-1]
    assert (last.subject, last.observed) == ("transport", "gloo over TCP on eth1")
    assert last.expected not in ("", last.observed)
    assert len(finding(SLUG, compared({1 << 20: 2.5})).evidence) == len(found.evidence) - 1
