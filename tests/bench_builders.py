"""A benchmark, and the demands that it meets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ncclcheck.model.bench import BenchPlan, BenchResult, Point, RankTime, TimeUs
from ncclcheck.model.bench_demands import Baseline, BaselinePoint, BenchDemands, Floor
from ncclcheck.model.snapshot import (
    Snapshot,
)
from tests.fact_builders import host_of


def bench_point(
    size_bytes: int, late_us: Iterable[float], time_us: float = 1000.0, wrong: int | None = 0
) -> Point:
    """A point in which rank i, on node i, typically entered late_us[i] after the first."""
    return Point(
        op="all_reduce",
        size_bytes=size_bytes,
        count=size_bytes // 4,
        dtype="float32",
        iters=20,
        time_us=TimeUs(time_us, time_us, time_us, time_us, None, time_us),
        first_us=2 * time_us,
        algbw_gb_s=1.0,
        busbw_gb_s=1.5,
        wrong=wrong,
        unstable=None,
        ranks=tuple(RankTime(rank, host_of(rank), late, time_us) for rank, late in enumerate(late_us)),
    )


def bench_result(*points: Point, **changes: Any) -> BenchResult:
    """A benchmark of gloo ranks, one per node, with those points."""
    measured = points or tuple(bench_point(1 << size, (3.0, 1.0, 4.0, 2.0)) for size in (20, 21, 22))
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 20, 1 << 21, 1 << 22), "float32", 5, None, 20.0, True)
    world_size = len(measured[0].ranks)
    return replace(BenchResult("gloo", world_size, world_size, plan, "tcp eth0", measured), **changes)


def bench_demands(result: BenchResult) -> BenchDemands:
    """A floor that the benchmark reaches, and itself as baseline."""
    points = tuple(
        BaselinePoint(point.op, point.size_bytes, point.dtype, point.iters, point.busbw_gb_s, point.time_us)
        for point in result.points
    )
    baseline = Baseline(
        "last.json",
        "2026-01-01T00:00:00+00:00",
        result.backend,
        result.world_size,
        result.nodes,
        result.transport,
        points,
    )
    return BenchDemands((Floor(1.0),), baseline)


def with_bench(snapshot: Snapshot, *points: Point, **changes: Any) -> Snapshot:
    """The snapshot with a benchmark of those points, or a healthy one, and demands that it meets."""
    result = bench_result(*points, **changes)
    return replace(snapshot, bench=result, bench_demands=bench_demands(result))
