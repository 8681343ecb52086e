"""What was measured in the parallel groups, and why nothing is known of them."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.measure.mesh.job_mesh import meshes
from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshBench
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_size


def groups_of_bench(snapshot: Snapshot) -> MeshBench | None:
    """Return what was measured in the groups, where something was."""
    bench = bench_of(snapshot)
    return None if bench is None else bench.mesh


def groups_not_measured(snapshot: Snapshot) -> Iterator[NotKnown | NotApplicable]:
    """Yield why there is nothing to judge."""
    bench = bench_of(snapshot)
    if (bench is None and not meshes(snapshot)) or (bench is not None and bench.plan.mesh is None):
        yield NotApplicable("no groups were measured: bench --mesh does")
        return
    yield from not_measured(snapshot, points=False)
    if bench is not None and bench.mesh is None and bench.started and not bench.unfinished:
        yield NotKnown("the parallel groups were not measured")


def unmeasured_points(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield each call that the backend does not do, and so was not measured in any group."""
    mesh = groups_of_bench(snapshot)
    for point in mesh.points if mesh is not None else ():
        if point.unsupported:
            what = f"{point.op} of {format_size(point.size_bytes)} in {point.dimension}"
            yield NotKnown(f"{what} was not measured: {point.unsupported}")


def ranks_of(time: GroupTime, limit: int = 16) -> str:
    """Return the ranks of a group: "4, 5, 6, 7"."""
    more = f" and {len(time.ranks) - limit} more" if len(time.ranks) > limit else ""
    return ", ".join(map(str, time.ranks[:limit])) + more
