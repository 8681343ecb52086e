"""What the nodes of a job say of its parallel groups, and how these lie on the nodes."""

from __future__ import annotations

from ncclcheck.measure.job_ranks import counts_ranks, hosts_of_ranks
from ncclcheck.measure.mesh.groups import sized
from ncclcheck.measure.mesh.placement import place
from ncclcheck.model.benchmarks.mesh import Mesh, MeshPlacement
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot

_MOST_DIMENSIONS, _MOST_RANKS = 12, 10_000_000


def meshes(snapshot: Snapshot) -> dict[str, Mesh]:
    """Return the mesh of each host whose command line names one."""
    return {node.host: mesh for node, mesh in snapshot.known("mesh") if mesh is not None and _is_sound(mesh)}


def names_none(snapshot: Snapshot) -> bool:
    """Return whether no node's command line names parallel groups; what could not be read may name some."""
    meshes_read = [mesh for _, mesh in snapshot.known("mesh")]
    return len(meshes_read) == len(snapshot.nodes) > 0 and not meshes(snapshot)


def _is_sound(mesh: Mesh) -> bool:
    """Return whether a mesh from another node is valid: its own command line would refuse any other."""
    names = [dimension.name for dimension in mesh.dimensions]
    sizes = [dimension.size for dimension in mesh.dimensions]
    return (
        0 < len(names) == len(set(names)) <= _MOST_DIMENSIONS
        and all(0 <= size <= _MOST_RANKS for size in sizes)
        and sizes.count(0) <= 1
        and all(0 < above.size <= _MOST_RANKS and set(above.over) <= set(names) for above in mesh.overlaid)
        and len(mesh.overlaid) <= _MOST_DIMENSIONS
    )


def placement(snapshot: Snapshot) -> Fact[MeshPlacement]:
    """Return how the groups lie on the nodes.

    Missing "absent" without a mesh, "error" where it does not fit the job, "timeout" where the ranks are not known.
    """
    seen = meshes(snapshot)
    if not seen:
        return Missing("absent", "no --mesh was given")
    hosts = hosts_of_ranks(snapshot)
    if isinstance(hosts, Missing):
        return Missing("timeout", f"the host of each rank: {hosts.detail}")
    mesh = next(iter(seen.values()))
    if isinstance(sized(mesh, len(hosts)), str) and not all(map(counts_ranks, snapshot.nodes)):
        return Missing("timeout", "the number of ranks on each node is not known: give --nproc-per-node")
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    placed = place(mesh, [numbers[host] for host in hosts])
    return Missing("error", placed) if isinstance(placed, str) else placed
