"""NC830 mesh-placement."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.mesh.job_mesh import meshes, names_none, placement
from ncclcheck.measure.mesh.placement import belongs_inside
from ncclcheck.model.benchmarks.mesh import DimensionPlacement
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check("NC830", "mesh-placement", "Groups that communicate in every layer stay inside nodes", needs=("mesh",))
def mesh_placement(snapshot: Snapshot) -> Iterator[Answer]:
    """No group of tensor or expert parallelism spans more nodes than it has to, by the order of `--mesh`.

    ## Why it matters
    Tensor parallelism exchanges activations several times in every layer. Inside a node that takes NVLink, between
    nodes a network that is ten times slower. The order of the dimensions decides which ranks form a group; a wrong one
    is no error anywhere, only a slow job.

    ## How to fix
    Use the order that the finding prints: the dimension that communicates most varies fastest, which in torch's
    DeviceMesh is the last one, and in Megatron-LM's `order` the first.

    ## Source
    Arithmetic: the groups are those of torch's DeviceMesh and of Megatron-LM's RankGenerator. Named are groups of tp,
    mp, tensor, ep and expert where another order of the same dimensions keeps them on fewer nodes.
    """
    placed = placement(snapshot)
    if isinstance(placed, Missing):
        if placed.missing == "timeout":
            yield NotKnown(placed.detail)
    elif placed.better_order:
        for dimension in placed.dimensions:
            if belongs_inside(dimension.name) and dimension.groups_apart:
                yield _finding(dimension, placed.order, placed.better_order, tuple(meshes(snapshot)))
    if names_none(snapshot):
        yield NotApplicable("no --mesh was given, and the command's arguments name no parallel sizes")
    yield from not_reported(snapshot)


def _finding(dimension: DimensionPlacement, order: str, better: str, hosts: tuple[str, ...]) -> Finding:
    spans = f"{dimension.nodes_spanned} nodes"
    return Finding(
        "warning",
        f"{dimension.groups_apart} of {dimension.groups} {dimension.name} groups of {dimension.size} ranks span "
        f"{spans}, where {dimension.least_nodes} can hold them: with the order {better} they span fewer",
        hosts,
        (
            Evidence(
                hosts,
                f"groups of {dimension.name} under {order}",
                f"span up to {spans}",
                f"{dimension.least_nodes}",
                "the ranks of each group, and the hosts of the ranks",
            ),
        ),
        (
            Fix(
                f"change the order of the job's dimensions to {better}, and check it",
                (f"ncclcheck preflight --mesh {better}",),
            ),
        ),
    )
