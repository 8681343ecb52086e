"""Which of two networks is clearly the faster one between the nodes: measured first, link speed second."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.advice.networks import Network
from ncclcheck.measure.networks import FASTER, Throughput
from ncclcheck.model.fact import Missing


def is_clearly_faster(one: Network, other: Network) -> bool:
    """True where `one` was measured at least 1.3 times as fast, and no usual transfer of `other` was as fast.

    Where the CPU limited the figure of `other`, the network itself may be as fast: then the link speeds have to say it
    too. What was not measured on both is never clearly faster. Where the two have a place in common, the slowest places
    are compared: a collective waits for these, and what the common ones carry says nothing of the difference.
    """
    fast, slow = one.throughput, other.throughput
    if isinstance(fast, Missing) or isinstance(slow, Missing):
        return False
    shares_a_place = any(one.places.get(host) == place for host, place in other.places.items())
    if shares_a_place and one.throughput_to and other.throughput_to:
        fast = min(one.throughput_to.values(), key=lambda to: to.median)
        slow = min(other.throughput_to.values(), key=lambda to: to.median)
    if fast.median < FASTER * slow.median or slow.high >= fast.low:
        return False
    return not slow.cpu_limited or 0 < FASTER * other.link_mbps <= one.link_mbps


def is_as_good(one: Network, other: Network) -> bool:
    """True where `other` is not clearly faster; where not both were measured, its link must not be faster either."""
    if isinstance(one.throughput, Missing) or isinstance(other.throughput, Missing):
        return one.rank <= other.rank
    return not is_clearly_faster(other, one)


def best_first(networks: Sequence[Network]) -> tuple[Network, ...]:
    """Ordered so that no network stands before one that is clearly faster; of the others by rank, else as given."""
    left, ordered = list(networks), []
    while left:
        top = [one for one in left if not any(is_clearly_faster(other, one) for other in left)]
        best = min(top, key=lambda one: one.rank)
        ordered.append(best)
        left.remove(best)
    return tuple(ordered)


def figure(network: Network) -> str:
    """The network with its measured bandwidth and spread, or what its link says where it was not measured."""
    if isinstance(network.throughput, Missing):
        link = (
            f"link speed {network.link_mbps / 1000:g} Gbit/s" if network.link_mbps else "link speed not known"
        )
        return f"{network.name}: not measured, {link}"
    return f"{network.name}: {_measured(network.throughput)}"


def _measured(one: Throughput) -> str:
    limit = ", limited by the CPU" if one.cpu_limited else ""
    return f"{one.median:.3g} Gbit/s ({one.low:.3g} to {one.high:.3g} over {one.transfers} transfers{limit})"
