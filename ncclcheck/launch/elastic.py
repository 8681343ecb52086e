"""An elastic job (`--nnodes MIN:MAX`): the nodes that joined are the job, if they are enough."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Node, Snapshot


def settled(snapshot: Snapshot, launch: Launch) -> Snapshot:
    """Return the snapshot of the job that an elastic launcher (`--nnodes MIN:MAX`) would start.

    The job is the nodes that joined, if at least MIN did. A node that said why it cannot join stays
    silent: that is a fault, not a smaller job.
    """
    count = len(snapshot.nodes)
    if launch.min_nodes is None or not launch.min_nodes <= count < launch.nnodes:
        return snapshot
    faults = tuple(
        silent
        for silent in snapshot.silent
        if silent.phase != "join" or not isinstance(silent.knock, Missing)
    )
    size = count + len(faults)
    return replace(
        snapshot,
        nodes=tuple(_sized_node(node, size) for node in snapshot.nodes),
        claims=tuple(_sized(claim, size) for claim in snapshot.claims),
        silent=faults,
    )


def _sized_node(node: Node, count: int) -> Node:
    launch = node.facts.launch
    if isinstance(launch, Missing):
        return node
    return replace(node, facts=replace(node.facts, launch=_sized(launch, count)))


def _sized(launch: Launch, count: int) -> Launch:
    return replace(launch, nnodes=count, world_size=count)
