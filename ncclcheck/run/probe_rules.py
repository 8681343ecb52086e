"""Whom a node calls because an order says so: only what members of this run announced, so often and no more.

Every node writes once where it listens and how it is called (`Announced`), before anybody is asked to call it. A node
that is ordered to call somebody reads that itself, once per ticket: an order that names anything else is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Protocol

from ncclcheck import timeouts
from ncclcheck.exchange.messages import (
    SCHEMA,
    SMALL_LIMIT_BYTES,
    Announced,
    Measure,
    Reach,
    Resolve,
    read_message,
)
from ncclcheck.exchange.probe.reachability import Peer, Target
from ncclcheck.exchange.probe.ring import RepeatedRounds, Ring
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.nccl.prediction import MAX_CANDIDATES
from ncclcheck.run.context import TOOL_VERSION

LONGEST_STEP_S = 60.0
MOST_TARGETS = MAX_CANDIDATES + 1  # ours, and NCCL's own
_FIRST_PORT = 1024  # listeners have ephemeral ports
_MOST_PEERS = 1 << 17
_MOST_SHIFTS = 8
_MOST_NETWORKS = 64
_MOST_PINGS_S = 1.0
_LONGEST_NAME = 255
_CLOUD_SERVICES = frozenset({"169.254.169.254", "fd00:ec2::254"})  # they hand out credentials


class Caller(Protocol):
    """What a node knows by itself when it is ordered to call others."""

    @property
    def ticket(self) -> int:
        """Its own ticket."""

    @property
    def addresses(self) -> frozenset[str]:
        """Its own addresses."""


class Announcements:
    """What the members announced. State: what was read, so that it cannot change under this node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, Announced] = {}

    def of(self, ticket: int) -> Announced | None:
        """Return what the member with this ticket announced; None where it announced nothing that can be read."""
        if ticket not in self._known:
            data = self._store.get_document(keys.announced(ticket))
            if isinstance(data, Missing):
                return None
            try:
                self._known[ticket] = read_message(data, Announced, SMALL_LIMIT_BYTES)
            except DecodeError:
                return None
        return self._known[ticket]


def announce_self(store: Store, ticket: int, facts: NodeFacts, targets: tuple[Target, ...]) -> Missing | None:
    """Write where this node listens, and by which names it is called, before anybody is told to call it."""
    launch, names = facts.launch, facts.names
    local = "" if isinstance(launch, Missing) else launch.local_addr or ""
    fqdn = "" if isinstance(names, Missing) or isinstance(names.fqdn, Missing) else names.fqdn
    own = tuple(name for name in (local, fqdn) if name)
    return store.set_document(keys.announced(ticket), encode(Announced(SCHEMA, TOOL_VERSION, targets, own)))


def probe_refusals(
    order: Reach | Resolve | Measure, caller: Caller, announcements: Announcements
) -> Iterator[str]:
    """Yield each reason why this node does not follow the order."""
    if isinstance(order, Resolve):
        yield from _step_seconds(order.deadline_s)
        announced = announcements.of(order.ticket)
        if announced is None or order.name not in announced.names or len(order.name) > _LONGEST_NAME:
            yield f"no member of this run is called {order.name[:60]!a}"
    elif isinstance(order, Reach):
        yield from _step_seconds(order.deadline_s)
        yield from _reach(order, caller, announcements)
    else:
        yield from _measure(order, caller, announcements)


def _step_seconds(seconds: float) -> Iterator[str]:
    if not 0.0 <= seconds <= LONGEST_STEP_S:
        yield f"a deadline of {seconds:.3g} s"


def _reach(order: Reach, caller: Caller, announcements: Announcements) -> Iterator[str]:
    if len(order.peers) > _MOST_PEERS or len({peer.ticket for peer in order.peers}) != len(order.peers):
        yield "peers that are not one each"
    if any(not key.isascii() or not key.isdigit() or str(int(key[:20])) != key for key in order.targets_of):
        yield "a ticket that is none"
    called = order.targets_of.get(str(caller.ticket), ())
    if caller.ticket in called:
        yield "it makes this node call itself"
    for peer in order.peers:
        if peer.ticket in called and len(peer.targets) > MOST_TARGETS:
            yield f"{len(peer.targets)} listeners of ticket {peer.ticket}, {MOST_TARGETS} are accepted"
        if peer.ticket in called:
            yield from _peer(peer, caller, announcements)


def _measure(order: Measure, caller: Caller, announcements: Announcements) -> Iterator[str]:
    ring, plan = order.ring, order.ring.plan
    peers = ring.peers
    if not 0 < len(peers) <= _MOST_PEERS or len({peer.ticket for peer in peers}) != len(peers):
        yield "peers that are not one each"
    elif not 0 <= plan.networks <= _MOST_NETWORKS or any(
        len(peer.targets) != plan.networks for peer in peers
    ):
        yield "a ring that does not have each network once per node"
    elif len(plan.shifts) > _MOST_SHIFTS or not all(0 < shift < len(peers) for shift in plan.shifts):
        yield "rounds that are none of this ring"
    elif not (
        0 <= plan.warm_up_s <= timeouts.LINKS_WARM_UP_S * 2
        and 0 <= plan.window_s <= timeouts.LINKS_WINDOW_S * 2
    ):
        yield "transfers that take too long"
    elif not 0 <= plan.pings_s <= _MOST_PINGS_S:
        yield "round trips that take too long"
    elif order.again is not None and not _is_of_ring(order.again, ring):
        yield "further rounds that are none of this ring"
    else:
        for peer in _called(order, caller.ticket):
            yield from _peer(peer, caller, announcements)


def _is_of_ring(again: RepeatedRounds, ring: Ring) -> bool:
    places = range(len(ring.peers))
    return (
        0 <= again.first <= _MOST_PEERS
        and len(again.rounds) <= _MOST_PEERS
        and all(
            0 <= part.network < ring.plan.networks
            and all(
                source in places and target in places and source != target for source, target in part.pairs
            )
            for part in again.rounds
        )
    )


def _called(order: Measure, ticket: int) -> Iterator[Peer]:
    """Whom the node with this ticket calls in it."""
    ring, place = order.ring, order.ring.place_of(ticket)
    if place is None:
        return
    transfers = order.again.transfers() if order.again is not None else ()
    places = {target for _, _, source, target in transfers if source == place}
    places |= {(place + shift) % len(ring.peers) for shift in ring.plan.shifts}
    yield from (ring.peers[number] for number in sorted(places))


def _peer(peer: Peer, caller: Caller, announcements: Announcements) -> Iterator[str]:
    announced = announcements.of(peer.ticket)
    if announced is None:
        yield f"ticket {peer.ticket} announced nothing"
        return
    for target in peer.targets:
        where = f"{target.address[:60]!a} port {target.port}"
        if target not in announced.targets:
            yield f"ticket {peer.ticket} did not announce {where}"
        elif not _may_be_called(target, caller.addresses):
            yield f"{where} is no address and port of a listener"


def _may_be_called(target: Target, own: frozenset[str]) -> bool:
    """Unicast, on an ephemeral port; where the address is this node's own as well, it is not called anyway.

    Services of this very node, and those of clouds, are out of reach of any order.
    """
    try:
        address = ipaddress.ip_address(target.address)
    except ValueError:
        return False
    if not _FIRST_PORT <= target.port <= 65535 or address.is_multicast or address.is_unspecified:  # noqa: PLR2004
        return False
    if address.is_loopback:
        return target.address in own
    return target.address not in _CLOUD_SERVICES
