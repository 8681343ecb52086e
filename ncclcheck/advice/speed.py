"""Which of two networks is clearly the faster one between the nodes: measured first, link speed second."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.advice.networks import Network
from ncclcheck.measure.links.network_rates import FASTER, Throughput
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import plural


def is_clearly_faster(network: Network, compared: Network) -> bool:
    """Return True if `one` was measured at least 1.3 times as fast, and no usual transfer of `other` was as fast.

    A collective waits for the slowest part, so where a network has one that is called slow (a node, or the way between
    two), that part is compared; and where the two have a place in common, their slowest places, since what the common
    ones carry says nothing of the difference. Where the CPU limited the figure of `other`, the network itself may be as
    fast: then the link speeds have to say it too. What was not measured on both is never clearly faster, nor
    are two with a slow way each compared by these: a large network always has some.
    """
    whole, other_whole = network.throughput, compared.throughput
    if isinstance(whole, Missing) or isinstance(other_whole, Missing):
        return False
    shares_a_place = any(network.places.get(host) == place for host, place in compared.places.items())
    fast = _counting(network, whole, shares_a_place)
    slow = _counting(compared, other_whole, shares_a_place)
    if (
        network.slowest is not None
        and compared.slowest is not None
        and max(fast.transfers, slow.transfers) == 1
    ):
        return False
    if fast.median < FASTER * slow.median or slow.high >= fast.low:
        return False
    return not slow.cpu_limited or 0 < FASTER * compared.link_mbps <= network.link_mbps


def _counting(network: Network, whole: Throughput, shares_a_place: bool) -> Throughput:
    if network.slowest is not None:
        return network.slowest.throughput
    if shares_a_place and network.throughput_to:
        return min(network.throughput_to.values(), key=lambda to: to.median)
    return whole


def is_as_good(network: Network, compared: Network) -> bool:
    """Return True if `other` is not clearly faster.

    Where not both were measured, its link must not be faster either.
    """
    if isinstance(network.throughput, Missing) or isinstance(compared.throughput, Missing):
        return network.rank <= compared.rank
    return not is_clearly_faster(compared, network)


def best_first(networks: Sequence[Network]) -> tuple[Network, ...]:
    """Ordered so that no network stands before one that is clearly faster; of the others by rank, else as given."""
    left, ordered = list(networks), []
    while left:
        top = [rival for rival in left if not any(is_clearly_faster(network, rival) for network in left)]
        # none on top: each beats one by another part of it
        best = min(top or left, key=lambda network: network.rank)
        ordered.append(best)
        left.remove(best)
    return tuple(ordered)


def figure(network: Network) -> str:
    """Return the network with its measured bandwidth and spread, or with its link speed where it was not measured.

    Where a part of it is slow, that part's, and what is usual.
    """
    if isinstance(network.throughput, Missing):
        link = (
            f"link speed {network.link_mbps / 1000:g} Gbit/s" if network.link_mbps else "link speed not known"
        )
        return f"{network.name}: not measured, {link}"
    if network.slowest is None:
        return f"{network.name}: {_measured(network.throughput)}"
    part = network.slowest
    return f"{network.name}: {_measured(part.throughput)} {part.where}, while {part.usual:.3g} Gbit/s is usual there"


def why_slow(whose: str, current: Network, better: Network) -> str:
    """Why a choice that works is to be changed: both figures, and, where one part is slow, why that concerns all."""
    figures = f"{whose} choice is reachable but slow: {figure(current)}; {figure(better)}"
    if current.slowest is None:
        return figures
    return f"{figures}. Every collective waits for the slowest part, and all nodes must use the same network"


def _measured(throughput: Throughput) -> str:
    limit = ", limited by the CPU" if throughput.cpu_limited else ""
    count = plural(throughput.transfers, "transfer")
    return (
        f"{throughput.median:.3g} Gbit/s ({throughput.low:.3g} to {throughput.high:.3g} over {count}{limit})"
    )
