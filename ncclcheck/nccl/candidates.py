"""The interfaces of a node that other nodes could use, NCCL's own choice first."""

from __future__ import annotations

from functools import lru_cache

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.nccl import socket_interface
from ncclcheck.nccl.prediction import MOST_NODES, chosen_interface, effective_environment

MAX_CANDIDATES = 8


def candidate_interfaces(facts: NodeFacts) -> tuple[tuple[str, str], ...]:
    """(name, address) of the interfaces that other nodes could use, at most 8, NCCL's own choice first.

    Each is up, running, no loopback, and given with its first IPv4 address, else its first global IPv6 address
    (the other way round under NCCL_SOCKET_FAMILY=AF_INET6). Where there are more, hardware comes before virtual ones.
    """
    return _candidates(SameObject(facts))


@lru_cache(maxsize=MOST_NODES)
def _candidates(node: SameObject[NodeFacts]) -> tuple[tuple[str, str], ...]:
    facts = node.value
    if isinstance(facts.interfaces, Missing):
        return ()
    chosen = chosen_interface(facts)
    chosen_pair = ("", "") if isinstance(chosen, Missing) else chosen
    ipv6_first = _is_ipv6_forced(facts)
    found = []
    for interface in facts.interfaces:
        addresses = _usable_addresses(interface, ipv6_first=ipv6_first) if is_usable(interface) else []
        if addresses:
            name, address = chosen_pair
            is_chosen = interface.name == name
            rank = (not is_chosen, not interface.is_hardware)
            found.append(
                (rank, (interface.name, address if is_chosen and address in addresses else addresses[0]))
            )
    return tuple(pair for _, pair in sorted(found, key=lambda pair: pair[0])[:MAX_CANDIDATES])


def is_usable(interface: Interface) -> bool:
    """Return True if other nodes could be reached through it: up, running, and no loopback."""
    is_loopback = interface.kind == "loopback" or "loopback" in interface.flags
    return "up" in interface.flags and socket_interface.is_running(interface) and not is_loopback


def _is_ipv6_forced(facts: NodeFacts) -> bool:
    environment = effective_environment(facts)
    return not isinstance(environment, Missing) and environment.get("NCCL_SOCKET_FAMILY") == "AF_INET6"


def _usable_addresses(interface: Interface, *, ipv6_first: bool) -> list[str]:
    """Addresses another node could connect to, the best first: no loopback and no fe80, whose scope is local."""
    by_family = {
        family: [
            address.address.partition("%")[0]
            for address in interface.addresses
            if address.family == family and not _is_local_only(address.address.partition("%")[0])
        ]
        for family in ("inet", "inet6")
    }
    return by_family["inet6"] + by_family["inet"] if ipv6_first else by_family["inet"] + by_family["inet6"]


def _is_local_only(address: str) -> bool:
    lowered = address.lower()
    return lowered.startswith(("127.", "fe8", "fe9", "fea", "feb", "0.")) or lowered in {"::1", "::"}
