"""Which ordered pairs of nodes to probe: all of them while that is cheap, a stated sample beyond."""

from __future__ import annotations

import random

from msgspec import Struct

ALL_PAIRS_UP_TO = 64
DEGREE = 6


class PairPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """Ordered pairs (from, to) of positions 0..n-1, both directions of each, and how they were drawn."""

    pairs: tuple[tuple[int, int], ...]
    possible: int
    scheme: str


def plan_pairs(nodes: int, seed: int = 0) -> PairPlan:
    """Return all ordered pairs up to 64 nodes; beyond, a ring, node 0 to all, and DEGREE random ones per node.

    The sample is the same for the same number of nodes and seed. Every node is in it, in both directions.
    """
    possible = nodes * (nodes - 1)
    if nodes <= ALL_PAIRS_UP_TO:
        everyone = tuple(
            (source, target) for source in range(nodes) for target in range(nodes) if source != target
        )
        return PairPlan(everyone, possible, "all pairs")
    edges = {(node, (node + 1) % nodes) for node in range(nodes)} | {(0, node) for node in range(1, nodes)}
    generator = random.Random(seed)  # noqa: S311 (a sample, no secret)
    for _ in range(DEGREE // 2):
        order = list(range(nodes))
        generator.shuffle(order)  # a random cycle through all nodes adds two neighbours to each
        edges |= {(order[index], order[(index + 1) % nodes]) for index in range(nodes)}
    both = {pair for source, target in edges for pair in ((source, target), (target, source))}
    scheme = f"a sample: ring, node 0 to all, {DEGREE} random neighbours of each node"
    return PairPlan(tuple(sorted(both)), possible, scheme)
