"""How often a ring over the nodes in a given order goes from leaf to leaf, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.model.benchmarks.matrix import FabricMatrix, Oversubscription


class RingRates(Struct, frozen=True):
    """The rate of a ring's slowest hop in the order of the job, and leaf by leaf, in 1e9 bit/s."""

    ordered_gbit_s: float
    best_gbit_s: float


class RingOrder(Struct, frozen=True):
    """A ring over hosts in the order of the job: its hops between leaves, the fewest possible, and its rates.

    `rates`: None where the load of the trunks was not measured.
    """

    crossings: int
    least: int
    rates: RingRates | None


def ring_order(hosts: Sequence[str], matrix: FabricMatrix) -> RingOrder | None:
    """Return how a ring over these hosts lies on the leaves; None where they are in fewer than two."""
    leaf_of = {host: number for number, leaf in enumerate(matrix.leaves) for host in leaf}
    path = [leaf_of[host] for host in hosts if host in leaf_of]
    if len(set(path)) < 2:  # noqa: PLR2004 (two leaves)
        return None
    leaving = Counter(here for here, there in zip(path, [*path[1:], path[0]], strict=True) if here != there)
    sizes = Counter(path)
    once = Counter(dict.fromkeys(sizes, 1))
    ratio = matrix.oversubscription
    return RingOrder(
        leaving.total(),
        len(sizes),
        None
        if ratio is None
        else RingRates(_slowest_hop_gbit_s(leaving, sizes, ratio), _slowest_hop_gbit_s(once, sizes, ratio)),
    )


def _slowest_hop_gbit_s(
    leaving: Mapping[int, int], sizes: Mapping[int, int], ratio: Oversubscription
) -> float:
    """Return what the slowest hop gets where so many flows leave each leaf.

    A trunk carries what all nodes of its leaf reached together across it; no flow is faster than within a leaf.
    """
    trunks = (ratio.across_gbit_s * sizes[leaf] / flows for leaf, flows in leaving.items())
    return min(ratio.within_gbit_s, *trunks)
