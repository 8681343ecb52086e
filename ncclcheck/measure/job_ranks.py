"""How many ranks of the job a node has, which is what its limits are judged against."""

from __future__ import annotations

from ncclcheck.launch.launcher_registry import binds_cpus
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Node, Snapshot


def ranks_on(snapshot: Snapshot, node: Node) -> int:
    """Return the ranks per node as the launcher says; else one rank per GPU; else one."""
    launch = node.facts.launch
    if not isinstance(launch, Missing):
        if launch.nproc_per_node is not None:
            return launch.nproc_per_node
        if launch.local_world_size > 1:
            return launch.local_world_size
    return max(_gpus(node), snapshot.expected_gpus_per_node or 0, 1)


def ranks_sharing_cpus(snapshot: Snapshot, node: Node) -> int:
    """How many ranks run on the CPUs that this node's agent may use: its own alone where the launcher binds each."""
    launch = node.facts.launch
    if not isinstance(launch, Missing) and binds_cpus(launch.source) and launch.local_world_size > 1:
        return 1
    return ranks_on(snapshot, node)


def ranks_of_job(snapshot: Snapshot) -> int:
    """Return the ranks of all nodes; a node that did not report counts like the largest of the others."""
    counts = [ranks_on(snapshot, node) for node in snapshot.nodes]
    missing = max(snapshot.job_size - len(counts), 0)
    total = sum(counts) + missing * max(counts, default=1)
    return max([total, *(launch.world_size for launch in snapshot.claims)])


def has_gpus(node: Node) -> bool:
    """Return True if GPUs are listed: ranks there run NCCL."""
    return _gpus(node) > 0


def _gpus(node: Node) -> int:
    """Return how many GPUs NVML lists; where its library is not there, how many torch sees."""
    gpus, torch = node.facts.gpus, node.facts.torch_gpus
    if not isinstance(gpus, Missing):
        return len(gpus)
    count = torch if isinstance(torch, Missing) else torch.count
    return 0 if isinstance(count, Missing) or gpus.missing != "absent" else count


def hosts_of_ranks(snapshot: Snapshot) -> Fact[tuple[str, ...]]:
    """Return the host of each rank of the job, from 0 on; Missing where a rank's host is not known.

    Where the launcher started all ranks, they have said it. Else the job's launcher will count them up node by node,
    as torchrun does.
    """
    if snapshot.silent or len(snapshot.nodes) < snapshot.nnodes:
        return Missing("absent", "not all nodes reported")
    started = {rank.rank: rank.host for rank in snapshot.ranks}
    if started:
        started |= {launch.rank: node.host for node, launch in snapshot.known("launch")}
        if sorted(started) != list(range(len(started))):
            return Missing("absent", "not all ranks said where they are")
        return tuple(started[rank] for rank in range(len(started)))
    in_order = sorted(snapshot.nodes, key=lambda node: node.node_rank)
    return tuple(node.host for node in in_order for _ in range(ranks_on(snapshot, node)))


def counts_ranks(node: Node) -> bool:
    """Return whether the number of ranks on the node is known, and not only assumed to be one."""
    launch = node.facts.launch
    launcher_counts = not isinstance(launch, Missing) and (
        launch.nproc_per_node is not None or launch.local_world_size > 1
    )
    return launcher_counts or has_gpus(node)
