"""Asks the kernel which source address, and so which interface, it would use towards an address."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.network.interfaces import addresses_by_interface
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface

_NO_ROUTE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL}


def source_for(
    address: str, port: int = 9, interfaces: Sequence[Interface] | None = None
) -> tuple[Fact[str], Fact[str]]:
    """Return the source address towards `address`, and the interface that owns it.

    Connecting a UDP socket makes the kernel choose the route and sends nothing. `address` is an IP address, not a
    name; port 9 (discard) is as good as any. `interfaces` saves reading them again for each of many destinations.
    """
    source = _source(address, port)
    if isinstance(source, Missing):
        return source, source
    own_address, scope_id = source
    if interfaces is not None:
        return own_address, owner_of(own_address, interfaces, scope_id)
    return own_address, _owner_now(own_address, scope_id)


def _source(address: str, port: int) -> Fact[tuple[str, int]]:
    """Return the address the kernel would send from, and the scope id of an IPv6 link-local one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    numeric = socket.AI_NUMERICHOST
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(socket.getaddrinfo(address, port, family, socket.SOCK_DGRAM, flags=numeric)[0][4])
            local = probe.getsockname()
    except OSError as error:
        if error.errno in _NO_ROUTE:
            return Missing("absent", f"no route to {address}: {error.strerror}")
        return missing_for(error, f"route to {address}")
    return str(local[0]).partition("%")[0], local[3] if family == socket.AF_INET6 else 0


def _owner_now(address: str, scope_id: int) -> Fact[str]:
    """Return the one interface that has `address` now; only addresses are read, since there may be many interfaces."""
    try:
        owners = [
            name
            for name, addresses in addresses_by_interface().items()
            if any(
                candidate.address == address and scope_id in (0, candidate.scope_id)
                for candidate in addresses
            )
        ]
    except Exception as error:  # psutil raises what it likes
        return missing_for(error, "the interfaces")
    return _only(owners, address)


def owner_of(address: str, interfaces: Sequence[Interface], scope_id: int = 0) -> Fact[str]:
    """Return the one interface that has `address` (in the scope, where one is given).

    Missing if none or several have it.
    """
    owners = [
        interface.name
        for interface in interfaces
        if scope_id in (0, interface.index)
        and any(candidate.address == address for candidate in interface.addresses)
    ]
    return _only(owners, address)


def _only(owners: Sequence[str], address: str) -> Fact[str]:
    match owners:
        case [owner]:
            return owner
        case []:
            return Missing("absent", f"no interface has the address {address}")
    return Missing("unsupported", f"{address} is on {' and '.join(owners)}: which one sends cannot be told")
