"""Whom a node calls because an order says so: only what members of this run announced.

Every node writes once where it listens and how it is called (`Announced`), before anybody is asked to call it. A node
that is ordered to call another reads that itself, once per ticket: an order that names anything else is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION, read_message
from ncclcheck.exchange.probe.further_ports import FURTHER_PORTS
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts

_FIRST_PORT, _LAST_PORT = 1024, 65535  # listeners have ephemeral ports
_CLOUD_SERVICES = frozenset(
    {ipaddress.ip_address("169.254.169.254"), ipaddress.ip_address("fd00:ec2::254")}
)  # they hand out credentials


class Announced(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a node listens, and by which names others may look for it: only announced addresses are probed."""

    schema_version: str
    tool_version: str
    targets: tuple[Target, ...]
    names: tuple[str, ...]
    facts: str = ""  # the digest of the facts that it writes


class Caller(Protocol):
    """What a node knows when it is ordered to call others."""

    @property
    def ticket(self) -> int:
        """Its own ticket."""

    @property
    def addresses(self) -> frozenset[str]:
        """Its own addresses."""

    @property
    def announced(self) -> Callable[[int], Announced | None]:
        """What the member with a ticket announced."""

    @property
    def look_up(self) -> Callable[[Collection[int]], None]:
        """Read what several members announced, which is quicker than one by one."""


class Announcements:
    """What the members announced. State: what was read, so that it cannot change under this node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, Announced] = {}

    def look_up(self, tickets: Collection[int]) -> None:
        """Read what these members announced in few requests, so that `of` has it."""
        unread = {keys.announced(ticket): ticket for ticket in tickets if ticket not in self._known}
        for key, data in self._store.get_documents(tuple(unread), thorough=False).items():
            self._keep(unread[key], data)

    def of(self, ticket: int) -> Announced | None:
        """Return what the member with this ticket announced; None where it announced nothing that can be read."""
        if ticket not in self._known:
            data = self._store.get_document(keys.announced(ticket))
            if not isinstance(data, Missing):
                self._keep(ticket, data)
        return self._known.get(ticket)

    def _keep(self, ticket: int, data: bytes) -> None:
        with suppress(DecodeError):
            self._known[ticket] = read_message(data, Announced, SMALL_LIMIT_BYTES)


def announce_self(
    store: Store, ticket: int, facts: NodeFacts, targets: tuple[Target, ...], digest: str = ""
) -> Missing | None:
    """Write where this node listens, and by which names it is called, before anybody is told to call it.

    `digest` is of the facts that follow.
    """
    launch, names = facts.launch, facts.names
    local = "" if isinstance(launch, Missing) else launch.local_addr or ""
    fqdn = "" if isinstance(names, Missing) or isinstance(names.fqdn, Missing) else names.fqdn
    own_names = tuple(name for name in (local, fqdn) if name)
    return store.set_document(
        keys.announced(ticket), encode(Announced(SCHEMA, TOOL_VERSION, targets, own_names, digest))
    )


class FirstNode(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What node 0, or the head node in its place, says about the store at the master address.

    `has_failed`: a bug in ncclcheck ended it there.
    """

    schema_version: str
    tool_version: str
    serving: bool
    detail: str
    has_failed: bool = False


def tell_of_first_node(
    store: Store, *, serving: bool, detail: str, has_failed: bool = False
) -> Missing | None:
    """Tell the others whether the master address is worth waiting for."""
    return store.set_document(
        keys.FIRST_NODE, encode(FirstNode(SCHEMA, TOOL_VERSION, serving, detail[:1000], has_failed))
    )


def peers_faults(peers: Collection[Peer], caller: Caller) -> Iterator[str]:
    """Yield why this node does not call the listeners of the peers that an order names."""
    caller.look_up([peer.ticket for peer in peers])
    for peer in peers:
        yield from _peer_faults(peer, caller)


def _peer_faults(peer: Peer, caller: Caller) -> Iterator[str]:
    announced = caller.announced(peer.ticket)
    if announced is None:
        yield f"ticket {peer.ticket} announced nothing"
        return
    for target in peer.targets:
        where = f"{target.address[:60]!a} port {target.port}"
        if not _is_announced(target, announced):
            yield f"ticket {peer.ticket} did not announce {where}"
        elif not _may_be_called(target, caller.addresses):
            yield f"{where} is no address and port of a listener"


def _is_announced(target: Target, announced: Announced) -> bool:
    """Return whether the member listens there, on the further ports as well; an order may leave those out."""
    return any(target in (known, replace(known, further=())) for known in announced.targets)


def _may_be_called(target: Target, own_addresses: frozenset[str]) -> bool:
    """Return whether it is unicast, on an ephemeral port. This node's own address is not called anyway.

    Services of this very node, and those of clouds, are out of reach of any order, however their address is spelled:
    nodes announce addresses as the system writes them, and no interface has an IPv4 address in IPv6 form.
    """
    try:
        if str(ipaddress.ip_address(target.address)) != target.address:
            return False
        address = ipaddress.ip_address(target.address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return False
    ports = (target.port, *target.further)
    if len(target.further) > FURTHER_PORTS or not all(_FIRST_PORT <= port <= _LAST_PORT for port in ports):
        return False
    if address.is_multicast or address.is_unspecified:
        return False
    if address.is_loopback:
        return target.address in own_addresses
    return address not in _CLOUD_SERVICES
