"""NC831 mesh-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.majority import compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.mesh.groups import order_of
from ncclcheck.measure.mesh.job_mesh import meshes, names_none, placement
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

_ARGUMENTS = "the command line of each node"


@check(
    "NC831",
    "mesh-mismatch",
    "The parallel groups fit the job, and are the same on all nodes",
    needs=("mesh",),
)
def mesh_mismatch(snapshot: Snapshot) -> Iterator[Answer]:
    """The sizes of `--mesh` multiply to the number of ranks, and every node has the same sizes in the same order.

    ## Why it matters
    Sizes that do not multiply to the world size stop the job after all ranks have started. Nodes with different sizes
    or orders form different groups: their collectives wait for ranks that are in another one, until the timeout.

    ## How to fix
    Correct the sizes, or the number of ranks per node (`--nproc-per-node`), and start all nodes with the same
    arguments.

    ## Source
    torch's init_device_mesh and Megatron-LM's initialize_model_parallel refuse sizes that do not multiply to the world
    size (torch/distributed/device_mesh.py, megatron/core/parallel_state.py).
    """
    seen = meshes(snapshot)
    comparison = compare((host, order_of(mesh)) for host, mesh in seen.items())
    if comparison.differs:
        yield Finding(
            "error",
            f"the parallel groups differ between nodes: {sentence(comparison)}: "
            "ranks would wait for others that are not in "
            "their group",
            comparison.odd_hosts,
            evidence(comparison, "parallel groups", _ARGUMENTS),
            (Fix("start all nodes with the same arguments"),),
        )
    placed = placement(snapshot)
    if isinstance(placed, Missing) and placed.missing == "timeout":
        yield NotKnown(placed.detail)
    elif isinstance(placed, Missing) and placed.missing == "error":
        hosts = tuple(seen)
        yield Finding(
            "error",
            f"the parallel groups do not fit the job: {placed.detail}",
            hosts,
            (
                Evidence(
                    hosts,
                    "parallel groups",
                    placed.detail,
                    "sizes that multiply to the number of ranks",
                    _ARGUMENTS,
                ),
            ),
            (Fix("correct the sizes, or the number of ranks per node"),),
        )
    silent = [node.host for node, mesh in snapshot.known("mesh") if mesh is None]
    if seen and silent:
        yield NotKnown("its command line names no parallel groups, and that of others does", tuple(silent))
    if names_none(snapshot):
        yield NotApplicable("no --mesh was given, and the command's arguments name no parallel sizes")
    yield from not_reported(snapshot)
