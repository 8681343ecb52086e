"""The interfaces of a node that other nodes could use, NCCL's own choice first; and what Gloo binds."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.formats.addresses import names_this_machine
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.nccl import ifname, socket_interface
from ncclcheck.nccl.prediction import MOST_NODES, chosen_interface, effective_environment

MAX_CANDIDATES = 8
MOST_OF_GLOO = 2  # addresses that are probed for Gloo beside those
GLOO_IFNAME = "GLOO_SOCKET_IFNAME"
_LISTED = 4


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


class Binding(Struct, frozen=True):
    """(interface, address) that Gloo listens on; or `fault`, the sentence that says why that cannot work."""

    places: tuple[tuple[str, str], ...] = ()
    fault: str = ""


def gloo_binding(facts: NodeFacts, value: str | None = None) -> Fact[Binding]:
    """Return what Gloo binds here under the job's environment, or with GLOO_SOCKET_IFNAME=`value`.

    A set list: the first address of each name, exactly. Unset: the first local address of the host name, else the
    loopback address (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, createDefaultDevice).
    """
    if isinstance(facts.environment, Missing):
        return facts.environment
    if isinstance(facts.interfaces, Missing):
        return facts.interfaces
    setting = value if value is not None else facts.environment.get(GLOO_IFNAME)
    names = ifname.parse_gloo(setting)
    if names is None:
        return _binding_by_host_name(facts)
    first: dict[str, tuple[str, str]] = {}
    for interface in facts.interfaces:
        for address in interface.addresses:
            first.setdefault(address.label or interface.name, (interface.name, _plain(address.address)))
    for name in names:
        if name not in first:
            return Binding(fault=f"{GLOO_IFNAME}={setting}: no interface with an address is named {name!r}")
    return _without_loopback(tuple(first[name] for name in names), f"{GLOO_IFNAME}={setting}")


def gloo_addresses(facts: NodeFacts) -> tuple[tuple[str, str], ...]:
    """Return the (interface, address) that Gloo binds here and that another node could call; none where unknown."""
    binding = gloo_binding(facts)
    if isinstance(binding, Missing) or binding.fault:
        return ()
    return tuple(place for place in binding.places if not place[1].lower().startswith("fe80"))


def _binding_by_host_name(facts: NodeFacts) -> Fact[Binding]:
    if isinstance(facts.names, Missing):
        return facts.names
    name, addresses = facts.names.hostname, facts.names.addresses
    if isinstance(addresses, Missing):
        if addresses.missing not in {"absent", "error"}:
            return addresses
        detail = "" if addresses.missing == "absent" else f" ({addresses.detail})"
        return Binding(
            fault=f"the host name {name} does not resolve{detail}, so Gloo falls back to 127.0.0.1"
        )
    interfaces = () if isinstance(facts.interfaces, Missing) else facts.interfaces
    interface_by_address = {
        _plain(address.address): interface.name
        for interface in reversed(interfaces)
        for address in interface.addresses
    }
    local = [
        _plain(entry)
        for entry in addresses
        if _plain(entry) in interface_by_address or names_this_machine(_plain(entry))
    ]
    if not local:
        means = listed(addresses, _LISTED)
        return Binding(fault=f"the host name {name} means {means}, which is not an address of this node")
    return _without_loopback(((interface_by_address.get(local[0], "lo"), local[0]),), f"the host name {name}")


def _without_loopback(places: tuple[tuple[str, str], ...], source: str) -> Binding:
    for _, address in places:
        if names_this_machine(address):
            return Binding(places, f"{source} makes Gloo bind {address}, which no other node can reach")
    return Binding(places)


def _plain(address: str) -> str:
    return address.partition("%")[0]
