"""Floors of single dimensions: `--min-busbw dp:all_reduce@64M=20`."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import bench_of
from ncclcheck.checks.registry import Answer
from ncclcheck.model.bench_demands import Floor
from ncclcheck.model.benchmarks.mesh_bench import MeshPoint
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_number, format_size


def judge_mesh_floor(snapshot: Snapshot, floor: Floor) -> Iterator[Answer]:
    """Yield a finding for each point whose slowest group is below the floor."""
    points = list(_points(snapshot, floor))
    if not points:
        yield NotKnown(f"the floor {floor} matches nothing that was measured in groups (bench --mesh)")
    for point in points:
        slowest = point.groups[0]
        if slowest.busbw_gb_s >= floor.busbw_gb_s:
            continue
        what = f"{point.op} of {format_size(point.size_bytes)} in {point.dimension}"
        got = f"{format_number(slowest.busbw_gb_s)} GB/s"
        yield Finding(
            "error",
            f"below the floor {floor}: {what}: group {slowest.group} has {got}",
            slowest.hosts,
            (
                Evidence(
                    slowest.hosts,
                    f"bus bandwidth of {what}, the slowest of {point.group_count} groups",
                    got,
                    f"at least {format_number(floor.busbw_gb_s)} GB/s",
                    "all groups of the dimension at once",
                ),
            ),
            (Fix("see the findings about its hosts and links", ("ncclcheck isolate",)),),
        )


def _points(snapshot: Snapshot, floor: Floor) -> Iterator[MeshPoint]:
    """Yield the points that the floor speaks of: of its op or each, of its size or the largest of the op."""
    bench = bench_of(snapshot)
    mesh = None if bench is None else bench.mesh
    measured = [] if mesh is None else [point for point in mesh.points if point.groups]
    of_dimension = [point for point in measured if point.dimension == floor.dimension]
    for op in dict.fromkeys(point.op for point in of_dimension if floor.op in (None, point.op)):
        points = [point for point in of_dimension if point.op == op]
        largest = max(point.size_bytes for point in points)
        size_bytes = largest if floor.size_bytes is None else floor.size_bytes
        yield from (point for point in points if point.size_bytes == size_bytes)
