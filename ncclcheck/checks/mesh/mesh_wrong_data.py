"""NC833 mesh-wrong-data."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.mesh._mesh import groups_not_measured, groups_of_bench, ranks_of, unmeasured_points
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshPoint
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_size


@check("NC833", "mesh-wrong-data", "The collectives in the parallel groups gave correct results")
def mesh_wrong_data(snapshot: Snapshot) -> Iterator[Answer]:
    """Every element that was received in a parallel group is the correct one, of that group and of no other.

    ## Why it matters
    Groups that work at the same time use the same GPUs and cards. Wrong data without an error corrupts a training run.

    ## How to fix
    Unset NCCL_ALGO and NCCL_PROTO. If `ncclcheck bench` without `--mesh` is correct on these nodes, the mistake is in
    what keeps several communicators apart: try another NCCL release.

    ## Source
    The data depend on group, rank, position and iteration, and are exact in any order of reduction.
    """
    mesh = groups_of_bench(snapshot)
    for point in mesh.points if mesh is not None else ():
        if point.wrong:
            yield _finding(point, [time for time in point.groups if time.wrong])
        if point.groups and point.wrong is None:
            yield NotKnown(f"{point.op} of {point.size_bytes} bytes in {point.dimension} was not verified")
    if mesh is not None and mesh.mix is not None and mesh.mix.wrong:
        yield Finding(
            "error",
            f"the mix of all groups gave {mesh.mix.wrong} wrong elements: training would continue with wrong data",
            (),
            (
                Evidence(
                    (), "wrong elements of the mix", str(mesh.mix.wrong), "0", "verification after each round"
                ),
            ),
            (_fix(),),
        )
    yield from unmeasured_points(snapshot)
    yield from groups_not_measured(snapshot)


def _finding(point: MeshPoint, wrong: list[GroupTime]) -> Finding:
    hosts = tuple(dict.fromkeys(host for time in wrong for host in time.hosts))
    first = f"group {wrong[0].group} (ranks {ranks_of(wrong[0])})"
    count, what = point.wrong, f"{point.op} of {format_size(point.size_bytes)}"
    return Finding(
        "error",
        f"{what} in {point.dimension} gave {count} wrong elements in {point.wrong_groups} of {point.group_count} "
        f"groups; the first: {first}: training would continue with wrong data",
        hosts,
        (
            Evidence(
                hosts, f"wrong elements of {what} in {point.dimension}", str(count), "0", "verified buffers"
            ),
        ),
        (_fix(),),
    )


def _fix() -> Fix:
    return Fix(
        "unset NCCL_ALGO and NCCL_PROTO, and measure the same nodes without groups", ("ncclcheck bench",)
    )
