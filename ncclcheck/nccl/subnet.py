"""NCCL_COMM_ID: the address it names, and the interface in the same subnet."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from msgspec import Struct

from ncclcheck.model.facts import Address, Interface
from ncclcheck.nccl import ifname

_MAX_PARTS = 4
_MAX_OCTET = 255
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")


class RemoteAddress(Struct, frozen=True):
    """The address in NCCL_COMM_ID, and the index of the interface in its `%scope` (0: none)."""

    address: str
    scope_id: int = 0


class HostName(Struct, frozen=True):
    """NCCL_COMM_ID holds a name, which only the resolver of that node can turn into an address."""

    name: str


class Unreadable(Struct, frozen=True):
    """NCCL refuses the value: result code 4."""

    why: str


def parse_comm_id(value: str, interfaces: Sequence[Interface]) -> RemoteAddress | HostName | Unreadable:
    """Return what NCCL reads in `value`: `ipv4:port`, `host:port`, `[ipv6]:port` or `[fe80::1%eth0]:port`.

    Empty and one-character values are refused, not taken as unset. NCCL src/misc/socket.cc
    (ncclSocketGetAddrFromString).
    """
    if not ifname.is_set(value):
        return Unreadable("it is empty or a single character, which counts as set")
    if not value.startswith("["):
        entries = ifname.split_list(value, 1)
        if not entries:
            return Unreadable("it has no address in front of the port")
        address = _dotted(entries[0])
        return RemoteAddress(address) if address else HostName(entries[0])
    inside, bracket, _ = value[1:].partition("]")
    if not bracket:
        return Unreadable("the closing bracket is missing")
    address, _, scope = inside.rpartition("%") if "%" in inside else (inside, "", "")
    try:
        text = str(ipaddress.IPv6Address(address))
    except ValueError:
        return HostName(address)  # NCCL goes on with whatever is in memory: nobody can tell
    return RemoteAddress(
        text, next((interface.index for interface in interfaces if scope and interface.name == scope), 0)
    )


def is_in_subnet(local: Address, remote: RemoteAddress, scope_id: int) -> bool:
    """Return True if `remote` is in the subnet of `local`; for IPv6 the scopes have to be equal too (matchSubnet)."""
    try:
        network = ipaddress.ip_interface(f"{local.address.partition('%')[0]}/{local.prefix_length}").network
        remote_address = ipaddress.ip_address(remote.address)
    except ValueError:  # facts of another node can hold anything
        return False
    if network.version != remote_address.version:
        return False
    return remote_address in network and (local.family == "inet" or scope_id == remote.scope_id)


def scope_of(interface: Interface, address: Address) -> int:
    """Return the scope id the kernel gives an address: the interface's index for fe80::/10, else 0."""
    if address.family == "inet6" and address.address.lower().startswith(("fe8", "fe9", "fea", "feb")):
        return address.scope_id or interface.index
    return 0


def _dotted(text: str) -> str | None:
    """Return the address in any form that inet_aton(3) accepts, which getaddrinfo(3) follows; None for a name."""
    parts = text.split(".")
    if len(parts) > _MAX_PARTS or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    numbers = [_c_number(part) for part in parts]
    *leading, last = numbers
    if any(number > _MAX_OCTET for number in leading) or last >= 256 ** (_MAX_PARTS - len(leading)):
        return None
    total = last + sum(number << (24 - 8 * position) for position, number in enumerate(leading))
    return str(ipaddress.IPv4Address(total))


def _c_number(text: str) -> int:
    if text[:2] in {"0x", "0X"}:
        return int(text, 16)
    return int(text, 8) if text.startswith("0") and len(text) > 1 else int(text)
