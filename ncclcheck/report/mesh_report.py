"""What was measured in the parallel groups, for the report: by dimension and group, beside the points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ncclcheck.model.benchmarks.mesh import DimensionPlacement, MeshPlacement
from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshBench, MeshPoint
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.report import GroupPoint, MeasuredDimension, MeasuredGroup, MeshReport


def mesh_report(mesh: MeshBench, placement: Fact[MeshPlacement]) -> MeshReport:
    """Return the points, and the same by dimension and group, in the order in which the dimensions were measured."""
    placed = {} if isinstance(placement, Missing) else {of.name: of for of in placement.dimensions}
    points_of: defaultdict[str, list[MeshPoint]] = defaultdict(list)
    for point in mesh.points:
        points_of[point.dimension].append(point)
    dimensions = tuple(_dimension(name, points, placed.get(name)) for name, points in points_of.items())
    return MeshReport(mesh.order, dimensions, mesh.points, mesh.mix, mesh.step)


def _dimension(
    name: str, points: Sequence[MeshPoint], placed: DimensionPlacement | None
) -> MeasuredDimension:
    times_of: defaultdict[int, list[tuple[MeshPoint, GroupTime]]] = defaultdict(list)
    for point in points:
        for time in point.groups:
            times_of[time.group].append((point, time))
    return MeasuredDimension(
        name,
        points[0].group_size,
        tuple(_group(times_of[number]) for number in sorted(times_of)),
        None if placed is None else placed.nodes_spanned,
        None if placed is None else placed.least_nodes,
        max((point.contention for point in points if point.contention is not None), default=None),
    )


def _group(times: Sequence[tuple[MeshPoint, GroupTime]]) -> MeasuredGroup:
    _, group = times[0]
    return MeasuredGroup(
        group.ranks,
        group.hosts,
        group.nodes,
        tuple(
            GroupPoint(
                point.op,
                point.size_bytes,
                time.time_us,
                time.low_us,
                time.high_us,
                time.busbw_gb_s,
                time.wrong,
            )
            for point, time in times
        ),
    )
