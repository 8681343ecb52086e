"""What was measured in parallel groups."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.measure.mesh.slow_groups import slow_groups
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension
from ncclcheck.model.benchmarks.mesh_bench import (
    GroupTime,
    MeshBench,
    MeshCall,
    MeshPlan,
    MeshPoint,
    Mix,
    MixShare,
    StepTime,
)
from tests.bench_builders import bench_result
from tests.fact_builders import host_of

MESH_PLAN = MeshPlan(
    Mesh((MeshDimension("dp", 2), MeshDimension("tp", 2))),
    (MeshCall("dp", "all_reduce", 1 << 20),),
    5.0,
    mix=True,
)


def group_time(number: int, time_us: float, **changes: Any) -> GroupTime:
    """Ranks 2n and 2n+1, on a node each."""
    ranks = (2 * number, 2 * number + 1)
    hosts = tuple(host_of(rank) for rank in ranks)
    time = GroupTime(number, ranks, hosts, 2, time_us, 0.98 * time_us, 1.02 * time_us, 1048.576 / time_us, 0)
    return replace(time, **changes)


def mesh_point(*times_us: float, **changes: Any) -> MeshPoint:
    """An all_reduce of 1 MiB in the groups of dp, slowest first; the slowest takes 1000 us alone."""
    times = sorted(
        (group_time(number, us) for number, us in enumerate(times_us)), key=lambda time: -time.time_us
    )
    comparison = slow_groups(times, on_gpus=True)
    point = MeshPoint("dp", "all_reduce", 1 << 20, 2, len(times), 20, min(times_us), 1000.0, tuple(times), 0, 0,
                      comparison.slow, comparison.judged, 1000.0, round(max(times_us) / 1000.0, 3))  # fmt: skip
    return replace(point, **changes)


def mesh_result(*points: MeshPoint, **changes: Any) -> BenchResult:
    """A benchmark of four ranks with these points in groups, and their mix."""
    mix = Mix(
        (MeshCall("dp", "all_reduce", 1 << 20),), 20, 3000.0, 2000.0, 1.5, (MixShare("dp", 3000.0, 1.0),), 0
    )
    mesh = replace(MeshBench("dp=2,tp=2", points, mix, StepTime(0.5, 0.4, 0.6)), **changes)
    result = bench_result()
    return replace(result, plan=replace(result.plan, mesh=MESH_PLAN), mesh=mesh)
