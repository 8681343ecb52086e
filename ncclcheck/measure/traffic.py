"""What a collective moves between nodes: the bus bandwidth of NCCL's and Gloo's usual algorithms, and their limit.

n ranks, g of them on each node, R the rate of a node to the other nodes in one direction. A ring enters and leaves each
node once, so its bus bandwidth is R. Limits follow from what must cross a node's border whatever the algorithm is.
"""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.benchmarks.ceiling import CeilingSource


class Shape(Struct, frozen=True):
    """How the ranks lie: so many in all, on so many nodes. Uneven nodes count as their mean."""

    world_size: int
    nodes: int

    @property
    def per_node(self) -> float:
        """Ranks of a node."""
        return self.world_size / self.nodes


class Term(Struct, frozen=True):
    """One thing that may bind: what a node (or GPU) can send through it in GB/s, in words, and how that is known.

    `spec_gb_s` is the line rate where that is more than a program ever gets; None: there is no such limit.
    `parts` is how many equal things it is made of: cards, links.
    """

    gb_s: float
    text: str
    source: CeilingSource
    spec_gb_s: float | None
    parts: int = 1


def ring(shape: Shape, network: Term) -> float:  # noqa: ARG001 (as the others)
    """Return R: each byte enters and leaves every node once."""
    return network.gb_s


def exchange_of_all(shape: Shape, network: Term) -> float:
    """Return the rate at which each rank sends a part to each rank of other nodes."""
    ranks, per_node = shape.world_size, shape.per_node
    return network.gb_s * (ranks - 1) / (per_node * (ranks - per_node))


def through_root(shape: Shape, network: Term) -> float:
    """Return the rate at which the node of the root sends or receives the parts of all ranks of other nodes."""
    return network.gb_s * (shape.world_size - 1) / (shape.world_size - shape.per_node)


def one_card(shape: Shape, network: Term) -> float:  # noqa: ARG001
    """Return the rate of one card: one rank of each node sends out, through one card."""
    return network.gb_s / network.parts


def limit_to_everybody(shape: Shape, rate_gb_s: float, switches_reduce: bool) -> float:
    """Return the limit where a node must receive all that it does not hold, and an all_reduce must also send it.

    `switches_reduce`: the switches of the network may add (SHARP), so that a node sends and receives a sum once.
    """
    ranks = shape.world_size
    least_traffic = rate_gb_s * (ranks - 1) / (ranks - shape.per_node)
    return max(least_traffic, rate_gb_s * 2 * (ranks - 1) / ranks) if switches_reduce else least_traffic


def limit_of_the_rate(shape: Shape, rate_gb_s: float, switches_reduce: bool) -> float:  # noqa: ARG001
    """Return the line rate."""
    return rate_gb_s
