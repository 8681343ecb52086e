"""What a GID is: its address, family, RoCE version, and the subnet it lies in."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from ncclcheck.model.hardware import Gid, RdmaPort

_LINK_LOCAL = "fe80:0000:0000:0000:"
_MAPPED = "0000:0000:0000:0000:0000:ffff:"


def entry_of(port: RdmaPort, index: int) -> Gid | None:
    """Return the entry of that index; None where the table lists none, so that it is unset."""
    for gid in () if isinstance(port.gids, Missing) else port.gids:
        if gid.index == index:
            return gid
    return None


def is_table_readable(port: RdmaPort) -> bool:
    """Return True if the GID table was readable, so that an index that is not listed is unset."""
    return not isinstance(port.gids, Missing) and (
        bool(port.gids) or not isinstance(port.gid_table_length, Missing)
    )


def roce_version(gid: Gid) -> int | None:
    """1 or 2; None where the type was not read."""
    if isinstance(gid.type, Missing):
        return None
    return 2 if gid.type.startswith("RoCE v2") else 1


def is_link_local(gid: Gid) -> bool:
    """Return True for fe80::/64, whatever other addresses the interface has."""
    return gid.gid.lower().startswith(_LINK_LOCAL)


def address(gid: Gid) -> str:
    """Return the IP address: IPv4 of a v4-mapped entry, else IPv6; the text itself where it is no address."""
    try:
        parsed = ipaddress.IPv6Address(gid.gid)
    except ValueError:  # facts of another node can hold anything
        return gid.gid
    return str(parsed.ipv4_mapped or parsed)


def family(gid: Gid) -> str:
    """IPv4 or IPv6."""
    return "IPv4" if gid.gid.lower().startswith(_MAPPED) else "IPv6"


def kind(gid: Gid) -> str:
    """`RoCE v2, IPv4`: what two ends must have in common."""
    version = roce_version(gid)
    words = "RoCE of unknown version" if version is None else f"RoCE v{version}"
    return f"{words}, {'link-local' if is_link_local(gid) else family(gid)}"


def subnet(gid: Gid, interfaces: Iterable[Interface]) -> str | None:
    """Return the subnet, by the prefix length of the interface with that address; None if no interface has it.

    A /32 or /128 has no neighbours: its host is routed on its own, so it is in no subnet.
    """
    own_address = address(gid)
    for interface in interfaces:
        for entry in interface.addresses:
            if entry.address.partition("%")[0] == own_address:
                return _network(own_address, entry.prefix_length)
    return None


def _network(own_address: str, prefix_length: int) -> str | None:
    try:
        network = ipaddress.ip_network(f"{own_address}/{prefix_length}", strict=False)
    except ValueError:
        return None
    return str(network) if network.num_addresses > 1 else None


def subnet_prefix(port: RdmaPort) -> str | None:
    """Return the first half of GID 0 of an InfiniBand port, set by its subnet manager; None where it is not known."""
    first = entry_of(port, 0)
    return None if first is None else ":".join(first.gid.lower().split(":")[:4])


def better(port: RdmaPort) -> Sequence[Gid]:
    """Return the entries that RoCE v2 networks route: v2 with an address that is not link-local, IPv4 first."""
    if isinstance(port.gids, Missing):
        return ()
    good = [gid for gid in port.gids if roce_version(gid) == 2 and not is_link_local(gid)]  # noqa: PLR2004 - v2
    return sorted(good, key=lambda entry: (family(entry) != "IPv4", entry.index))
