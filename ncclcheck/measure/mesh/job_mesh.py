"""What the nodes of a job say of its parallel groups, and how these lie on the nodes."""

from __future__ import annotations

from ncclcheck.measure.job_ranks import counts_ranks, hosts_of_ranks
from ncclcheck.measure.mesh.groups import sized
from ncclcheck.measure.mesh.placement import place
from ncclcheck.model.benchmarks.mesh import Mesh, MeshPlacement
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot


def meshes(snapshot: Snapshot) -> dict[str, Mesh]:
    """Return the mesh of each host whose command line names one."""
    return {node.host: mesh for node, mesh in snapshot.known("mesh") if mesh is not None}


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
