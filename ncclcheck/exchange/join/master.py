"""The path from each node to MASTER_ADDR:MASTER_PORT, diagnosed before anything depends on it."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.knock import FAILED, PROTOCOL, Knocked, KnockMessage, KnockReply, send_knock
from ncclcheck.exchange.join.unjoined import unjoined
from ncclcheck.exchange.probe.dial import DialOutcome, dial
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.facts.network.names import resolve
from ncclcheck.facts.network.routes import source_for
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import MasterOutcome, MasterPath
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock


class MasterSearch(Struct, frozen=True):
    """Which process looks for node 0, and where. `serving`: node 0 says that its store is up."""

    launch: Launch
    host: str
    own_addresses: frozenset[str]
    job_id: str
    serving: bool = False
    trust: Trust = field(default_factory=Trust)


def resolve_master(name: str, deadline: Deadline) -> Fact[tuple[str, ...]]:
    """Return the addresses of the master's name, and retry for a few seconds where there is none yet."""
    patience = deadline.within(timeouts.MASTER_RESOLVE_S)
    while True:
        addresses = resolve(name, max(patience.left(), 0.5))
        if not isinstance(addresses, Missing) or patience.passed:
            return addresses
        time.sleep(patience.left(timeouts.MASTER_RETRY_S))


def is_loopback(address: str) -> bool:
    """Return whether it is in 127.0.0.0/8 or ::1."""
    return ipaddress.ip_address(address.split("%")[0]).is_loopback


def names_loopback(way: MasterPath) -> bool:
    """Return whether the name means "this machine" everywhere, so that no other machine can reach it."""
    try:
        return is_loopback(way.name)
    except ValueError:
        return way.name.split(".")[0].lower() == "localhost"


def describe(name: str, port: int, addresses: Fact[tuple[str, ...]], own: frozenset[str]) -> MasterPath:
    """Return the path as far as it is known without connecting: name, addresses, the kernel's choice of source."""
    nowhere = Missing("absent", "the name has no address")
    if isinstance(addresses, Missing):
        return MasterPath(name, port, addresses, False, nowhere, nowhere, "unresolvable", addresses.detail)
    source, interface = source_for(addresses[0], port)
    local = all(address in own or is_loopback(address) for address in addresses)
    return MasterPath(name, port, addresses, local, source, interface, "refused")


def find_master(search: MasterSearch, deadline: Deadline, say: Callable[[str], None]) -> MasterPath:
    """Return the path of a node that is not node 0, with outcome "answered" once something accepts there.

    Filtered and unreachable are called in at most 10 s. Refused is tried again until the deadline, since node 0 may
    start later; it ends early when node 0 itself says by datagram that its store is up or never will be.
    """
    launch = search.launch
    started = time.monotonic()
    name = launch.master_addr or ""
    addresses = resolve_master(name, deadline)
    way = describe(name, launch.master_port, addresses, search.own_addresses)
    if not isinstance(addresses, Missing):
        way = _connect(way, addresses, search, deadline, say)
    return replace(way, seconds=round(time.monotonic() - started, 3))


def _connect(
    way: MasterPath,
    addresses: Sequence[str],
    search: MasterSearch,
    deadline: Deadline,
    say: Callable[[str], None],
) -> MasterPath:
    astray = way.is_local and search.launch.node_rank != 0
    patience = deadline.within(timeouts.MASTER_LOCAL_S) if astray else deadline
    unreachable = deadline.within(timeouts.MASTER_UNREACHABLE_S)
    confirmed = deadline.within(timeouts.MASTER_CONFIRMED_S) if search.serving else None
    way = replace(way, serving_confirmed=search.serving)
    next_knock, was_told = 0.0, False
    while True:
        allowed_s = deadline.left(timeouts.MASTER_SYN_S)
        outcome, detail = dial(addresses, way.port, Deadline(allowed_s))
        if outcome == "filtered" and way.attempts and allowed_s < timeouts.MASTER_SYN_S:
            break  # cut short by the deadline: so little silence does not unsay what was answered before
        way = replace(
            way, attempts=way.attempts + 1, detail=detail, outcome=_word(outcome, astray, addresses)
        )
        if outcome in ("connected", "filtered", "error") or patience.passed:
            break
        if outcome == "no-route" and unreachable.passed:
            break
        if not was_told:
            say(f"{way.name}:{way.port} {outcome} ({detail}); trying until it answers")
            was_told = True
        if time.monotonic() >= next_knock:
            reply = send_knock(
                Knocked(addresses, way.port, search.trust), _message(way, search, final=False), 0.3
            )
            next_knock = time.monotonic() + 1.0
            if reply is not None and reply.given_up:
                way = _given_up(way, reply)
                break
            if reply is not None and reply.serving and confirmed is None:
                way = replace(way, serving_confirmed=True)
                confirmed = deadline.within(timeouts.MASTER_CONFIRMED_S)
        if confirmed is not None and confirmed.passed:
            break
        time.sleep(patience.left(timeouts.MASTER_RETRY_S))
    return way


def _word(outcome: DialOutcome, astray: bool, addresses: Sequence[str]) -> MasterOutcome:
    if outcome == "connected":
        return "answered"
    if astray:
        return "loopback" if all(is_loopback(address) for address in addresses) else "not-first-node"
    return "refused" if outcome == "error" else outcome


def give_up(way: MasterPath, search: MasterSearch) -> MasterPath:
    """Tell node 0 that this node cannot join (three times: datagrams get lost); return the path with its answer."""
    if isinstance(way.addresses, Missing):
        return way
    knocked = Knocked(way.addresses, way.port, search.trust)
    for _ in range(3):
        reply = send_knock(knocked, _message(way, search, final=True), 0.3)
        if reply is not None and reply.given_up.startswith(FAILED):
            return _given_up(way, reply)
        if reply is not None:
            is_served = way.serving_confirmed or reply.serving
            return replace(way, serving_confirmed=is_served, answers_lost=reply.answers_lost)
    return way


def is_served(search: MasterSearch, way: MasterPath) -> bool:
    """Return whether node 0 itself says, by datagram, that its store is up there."""
    reply = _reply(search, way)
    return reply is not None and reply.serving


def _reply(search: MasterSearch, way: MasterPath) -> KnockReply | None:
    addresses = () if isinstance(way.addresses, Missing) else way.addresses
    return send_knock(Knocked(addresses, way.port, search.trust), _message(way, search, final=False), 0.3)


def unanswered(search: MasterSearch, way: MasterPath, why: Missing) -> MasterPath:
    """Return the path to what accepts connections and does not answer as a store: "lost" or "foreign"."""
    return unjoined(way, why, is_alive=_reply(search, way) is not None)


def unmarked(search: MasterSearch, way: MasterPath, why: Missing) -> MasterPath:
    """Return the path to a TCPStore without the mark of this job: of another job, unless it is node 0's own.

    Then somebody erased the mark, or node 0 ended or hangs before it wrote it: nothing is said about the network.
    """
    if way.serving_confirmed or is_served(search, way):
        detail = "node 0 serves its store there, but what it wrote was erased: another program writes into it"
        return replace(way, outcome="lost", detail=detail, serving_confirmed=True)
    found = unanswered(search, way, why)
    if found.outcome == "lost":
        return found
    return replace(found, detail=f"a TCPStore answers there, but of another program or job ({why.detail})")


def _given_up(way: MasterPath, reply: KnockReply) -> MasterPath:
    """Return the path as node 0 explains it: if ncclcheck failed there, TCP says nothing about the network."""
    word = f"node 0 answers by datagram: {reply.given_up}"
    if reply.given_up.startswith(FAILED):
        return replace(way, outcome="lost", detail=word)
    return way if word in way.detail else replace(way, detail=f"{way.detail}; {word}")


def _message(way: MasterPath, search: MasterSearch, *, final: bool) -> KnockMessage:
    return KnockMessage(PROTOCOL, search.job_id, final, Knock(search.host, search.launch.node_rank, way))
