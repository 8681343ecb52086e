"""NC832 group-slow-in-mesh."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.mesh._mesh import groups_not_measured, groups_of_bench, ranks_of, unmeasured_points
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.mesh.slow_groups import EFFECT
from ncclcheck.model.benchmarks.mesh_bench import MeshPoint, SlowGroup
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_number, format_size


@check("NC832", "group-slow-in-mesh", "No parallel group is slower than the others of its dimension")
def group_slow_in_mesh(snapshot: Snapshot) -> Iterator[Answer]:
    """No group is slower than the groups of its dimension that span as many nodes, while all of them work at once.

    A group is named if it takes 20 % more time than the median of the others, with 95 %, in two measurements.
    With gloo, groups inside a node are not judged: they are as fast as the cores that they get.

    ## Why it matters
    Every step waits for the slowest group. A benchmark over all ranks shows one figure, in which the group that delays
    them cannot be seen.

    ## How to fix
    The finding says whether the group is slow alone as well: then a rank, a node or a link of it is slow, which
    `ncclcheck isolate` names. If it is slow only beside the others, they share something with it, such as an uplink.

    ## Source
    Measured by `bench --mesh`: all groups of a dimension at once, then the slowest of them alone.
    """
    mesh = groups_of_bench(snapshot)
    worst: dict[tuple[str, int], tuple[MeshPoint, SlowGroup]] = {}
    for point in mesh.points if mesh is not None else ():
        for slow in point.slow:
            key = (point.dimension, slow.time.group)
            if key not in worst or _factor(worst[key][1]) < _factor(slow):
                worst[key] = (point, slow)
    for point, slow in sorted(worst.values(), key=lambda found: -_factor(found[1])):
        yield _finding(point, slow)
    measured = [point for point in mesh.points if point.groups] if mesh is not None else []
    if measured and not any(point.judged for point in measured):
        yield NotApplicable(
            "no group has another that spans as many nodes; with gloo, groups inside a node are not judged"
        )
    yield from unmeasured_points(snapshot)
    yield from groups_not_measured(snapshot)


def _factor(slow: SlowGroup) -> float:
    return slow.time.time_us / slow.usual_us


def _finding(point: MeshPoint, slow: SlowGroup) -> Finding:
    time, what = slow.time, f"{point.op} of {format_size(point.size_bytes)}"
    alone = ""
    if time.group == point.groups[0].group and point.alone_us is not None:
        is_alone = point.alone_us > (1 + EFFECT) * slow.usual_us
        alone = (
            "; alone it is as slow" if is_alone else "; alone it is not: it shares something with the others"
        )
    return Finding(
        "warning",
        f"group {time.group} of {point.dimension} (ranks {ranks_of(time)}) delays the job: {what} takes it "
        f"{format_number(time.time_us)} us, {_factor(slow):.2f} times as long as the others{alone}",
        time.hosts,
        (
            Evidence(
                time.hosts,
                f"{what} in group {time.group} of {point.dimension}",
                f"{format_number(time.time_us)} us",
                f"{format_number(slow.usual_us)} us, the median of {slow.compared} groups on as many nodes",
                f"all {point.group_count} groups of the dimension at once",
            ),
        ),
        (Fix("find the slow node or link among these hosts", ("ncclcheck isolate",)),),
    )
