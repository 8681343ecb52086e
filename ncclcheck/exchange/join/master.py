"""The path from each node to MASTER_ADDR:MASTER_PORT, diagnosed before anything depends on it."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.knock import (
    PROTOCOL,
    Knocked,
    KnockMessage,
    KnockReply,
    knock_everywhere,
    send_knock,
    unproven_reply,
)
from ncclcheck.exchange.join.unjoined import refuses_datagrams, unjoined
from ncclcheck.exchange.probe.dial import DialOutcome, dial, socket_address
from ncclcheck.exchange.trust.trust import NO_KEY_THERE, Trust
from ncclcheck.facts.network.name_servers import servers_text, silent_servers
from ncclcheck.facts.network.names import resolve
from ncclcheck.facts.network.routes import source_for
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import MasterOutcome, MasterPath
from ncclcheck.model.formats.addresses import is_link_local, means_this_machine
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock

_MOST_SERVERS, _LONGEST_CLAIM = 3, 300


class MasterSearch(Struct, frozen=True):
    """Which process looks for node 0, and where. `serving`: node 0 says that its store is up."""

    launch: Launch
    host: str
    own_addresses: frozenset[str]
    job_id: str
    serving: bool = False
    trust: Trust = field(default_factory=Trust)


def resolve_master(name: str, deadline: Deadline, say: Callable[[str], None]) -> Fact[tuple[str, ...]]:
    """Return the addresses of the master's name, and retry for a few seconds where there is none yet."""
    patience = deadline.within(timeouts.MASTER_RESOLVE_S)
    was_told = False
    while True:
        addresses = resolve(name, max(patience.left(), 0.5))
        if not isinstance(addresses, Missing):
            return addresses
        if patience.passed:
            silent = silent_servers() if addresses.missing != "absent" else ()
            why = f"{addresses.detail}; {servers_text(silent)} gave no answer"
            return replace(addresses, detail=why) if silent else addresses
        if not was_told:
            left_s = f"{patience.left():.0f} s"
            say(f"the master's name does not resolve ({addresses.detail}); trying for {left_s}")
            was_told = True
        time.sleep(patience.left(timeouts.MASTER_RETRY_S))


def describe(
    name: str, port: int, addresses: Fact[tuple[str, ...]], own_addresses: frozenset[str]
) -> MasterPath:
    """Return the path as far as it is known without connecting: name, addresses, the kernel's choice of source."""
    nowhere = Missing("absent", "the name has no address")
    if isinstance(addresses, Missing):
        return MasterPath(name, port, addresses, False, nowhere, nowhere, "unresolvable", addresses.detail)
    source, interface = source_for(addresses[0], port)
    local = all(
        address.partition("%")[0] in own_addresses or means_this_machine(address) for address in addresses
    )
    return MasterPath(name, port, addresses, local, source, interface, "refused")


def find_master(search: MasterSearch, deadline: Deadline, say: Callable[[str], None]) -> MasterPath:
    """Return the path of a node that is not node 0, with outcome "answered" once something accepts there.

    Filtered and unreachable are called in at most 10 s. Refused is tried again until the deadline, since node 0 may
    start later; it ends early when node 0 itself, or a node that has joined it, says by datagram that the store is up
    or never will be.
    """
    launch = search.launch
    started = time.monotonic()
    name = launch.master_addr or ""
    addresses = resolve_master(name, deadline, say)
    path = describe(name, launch.master_port, addresses, search.own_addresses)
    if not isinstance(addresses, Missing):
        path = _connect(path, addresses, search, deadline, say)
        if path.outcome == "refused" and not (path.serving_confirmed or path.serves_at or path.not_served):
            path = replace(path, nobody_there=refuses_datagrams(addresses, path.port))
    if path.outcome == "refused" and (claim := _unproven(search)):
        path = replace(path, detail=f"{path.detail}; {claim}")
    return replace(path, seconds=round(time.monotonic() - started, 3))


def _connect(
    path: MasterPath,
    addresses: Sequence[str],
    search: MasterSearch,
    deadline: Deadline,
    say: Callable[[str], None],
) -> MasterPath:
    is_apart, is_rank_0 = search.launch.is_apart, search.launch.node_rank == 0
    # A process that only knows its rank may be on node 0's host: loopback is wrong only where no store is served there.
    astray = path.is_local and (is_apart or (not is_rank_0 and search.launch.told == "rank"))
    patience = deadline.within(timeouts.MASTER_LOCAL_S) if astray and is_apart else deadline
    unreachable = deadline.within(timeouts.MASTER_UNREACHABLE_S)
    confirmed = deadline.within(timeouts.MASTER_CONFIRMED_S) if search.serving else deadline
    path = replace(path, serving_confirmed=search.serving)
    knocking, was_told, claim = _Knocking(), False, ""
    while True:
        allowed_s = deadline.left(timeouts.MASTER_SYN_S)
        tried, outcome, detail = _dialled(path, search, Deadline(allowed_s), say)
        if outcome == "filtered" and path.attempts and allowed_s < timeouts.MASTER_SYN_S:
            break  # cut short by the deadline: so little silence does not unsay what was answered before
        path = replace(
            tried, attempts=path.attempts + 1, detail=detail, outcome=_word(outcome, astray, addresses)
        )
        is_over = outcome == "no-route" and unreachable.passed
        if outcome in ("connected", "filtered", "error") or patience.passed or is_over:
            break
        if not was_told:
            say(f"{path.name}:{path.port} {outcome} ({detail}); trying until it answers")
            was_told = True
        if knocking.is_due():
            asked = ask(path, search, everywhere=knocking.is_widely_due())
            path = asked.path
            if asked.direct is not None and asked.direct.given_up:
                path = _given_up(path, asked.direct)
                break
            claim = claim or _announced(_unproven(search), say)
            if asked.direct is not None and astray:
                patience = deadline  # node 0 is on this very machine, and has not begun to serve
            if path.serving_confirmed or path.serves_at:
                confirmed = confirmed.within(timeouts.MASTER_CONFIRMED_S)
        if confirmed.passed:
            break
        time.sleep(patience.left(timeouts.MASTER_RETRY_S))
    return path


def _dialled(
    path: MasterPath, search: MasterSearch, deadline: Deadline, say: Callable[[str], None]
) -> tuple[MasterPath, DialOutcome, str]:
    """Return how a connection to the master ended; without an answer, ask by datagram whether it serves.

    Four lost SYNs are enough where node 0 is known to serve, or where this node's own firewall drops what it sends.
    """
    addresses = () if isinstance(path.addresses, Missing) else path.addresses
    outcome, detail = dial(addresses, path.port, deadline.within(timeouts.MASTER_FIRST_SYNS_S))
    if outcome == "filtered" and not path.attempts:
        say(f"{path.name}:{path.port} does not answer; trying for {deadline.left():.0f} s")
    while outcome == "filtered" and not deadline.passed:
        path = ask(path, search).path
        path = replace(path, blocked_here=_is_blocked_here(addresses, path.port))
        outcome, detail = dial(addresses, path.port, deadline.within(timeouts.MASTER_MORE_SYNS_S))
        if path.serving_confirmed or path.serves_at or path.blocked_here:
            break
    return path, outcome, detail


def _is_blocked_here(addresses: Sequence[str], port: int) -> bool:
    """Return whether this node's own firewall rejects datagrams to there: the kernel says so (send(2), EPERM)."""
    for address in addresses:
        try:
            family, target = socket_address(address, port, socket.SOCK_DGRAM)
            with socket.socket(family, socket.SOCK_DGRAM) as caller:
                caller.connect(target)
                caller.send(b"")
        except PermissionError:
            return True
        except OSError:
            continue
    return False


class Asked(Struct, frozen=True):
    """The result of a knock: the path with what was learned, and the reply of node 0 at the master address itself."""

    path: MasterPath
    direct: KnockReply | None
    is_heard: bool  # by node 0 or by a node that can tell it


class _Knocking:
    """When a node knocks again: at the master address every second, everywhere at growing intervals."""

    def __init__(self) -> None:
        self._next = 0.0
        self._interval_s = timeouts.BROADCAST_AFTER_S
        self._next_widely = time.monotonic() + self._interval_s

    def is_due(self) -> bool:
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + timeouts.KNOCK_EVERY_S
        return True

    def is_widely_due(self) -> bool:
        if time.monotonic() < self._next_widely:
            return False
        self._interval_s *= 2
        self._next_widely = time.monotonic() + self._interval_s
        return True


def ask(path: MasterPath, search: MasterSearch, *, final: bool = False, everywhere: bool = True) -> Asked:
    """Knock at the master address, and `everywhere` else if node 0 does not reply there."""
    knocked, message = _knocked(path, search), _message(path, search, final=final)
    reply = send_knock(knocked, message, timeouts.KNOCK_S) if knocked.addresses else None
    if reply is not None and not reply.relay:
        is_up = path.serving_confirmed or reply.serving
        path = replace(
            path, serving_confirmed=is_up, confirmed_by_relay=False, answers_lost=reply.answers_lost
        )
        return Asked(path, reply, True)
    replies = knock_everywhere(knocked, message, timeouts.KNOCK_S) if everywhere else ()
    for address, knock_reply in replies:
        path = _with_reply(path, search, address, knock_reply)
    return Asked(path, None, bool(replies))


def _with_reply(path: MasterPath, search: MasterSearch, address: str, reply: KnockReply) -> MasterPath:
    """Return the path with what a reply from that address says about where node 0 serves.

    Anybody can reply to a broadcast. Without a key only node 0 itself is believed to be elsewhere, at the address that
    it replies from; nothing is sent there.
    """
    if not reply.serving:
        return path
    at = (reply.serves_at if reply.relay else address).partition("%")[0]
    known = () if isinstance(path.addresses, Missing) else path.addresses
    if at in {address.partition("%")[0] for address in known}:
        by_relay = reply.relay and (path.confirmed_by_relay or not path.serving_confirmed)
        path = replace(path, serving_confirmed=True, confirmed_by_relay=by_relay)
        return replace(path, answers_lost=path.answers_lost or reply.answers_lost)
    is_believed = not reply.relay or search.trust.key is not None
    return replace(path, serves_at=at) if is_believed and _is_of_a_node(at) and not path.serves_at else path


def _is_of_a_node(text: str) -> bool:
    try:
        ipaddress.ip_address(text)  # a zone may be any text
        return "%" not in text and not means_this_machine(text) and not is_link_local(text)
    except ValueError:
        return False


def _word(outcome: DialOutcome, astray: bool, addresses: Sequence[str]) -> MasterOutcome:
    if outcome == "connected":
        return "answered"
    if astray:
        return "loopback" if all(means_this_machine(address) for address in addresses) else "not-first-node"
    return "refused" if outcome == "error" else outcome


def give_up(path: MasterPath, search: MasterSearch) -> MasterPath:
    """Tell node 0 that this node cannot join (three times: datagrams get lost); return the path with its answer.

    A node 0 without a key can read only what is sent without one; the message holds nothing but this diagnosis.
    """
    is_keyless = path.outcome == "other-key" and path.detail.startswith(NO_KEY_THERE)
    if is_keyless:
        search = replace(search, trust=Trust())
    for _ in range(3):
        asked = ask(path, search, final=True, everywhere=not is_keyless)
        path = asked.path
        if asked.direct is not None and asked.direct.given_up:
            return _given_up(path, asked.direct)
        if asked.is_heard:
            break
    return path


def is_served(search: MasterSearch, path: MasterPath) -> bool:
    """Return whether node 0 itself says, by datagram, that its store is up there."""
    reply = _reply(search, path)
    return reply is not None and reply.serving


def _reply(search: MasterSearch, path: MasterPath) -> KnockReply | None:
    reply = send_knock(_knocked(path, search), _message(path, search, final=False), timeouts.KNOCK_S)
    return None if reply is None or reply.relay else reply


def unanswered(search: MasterSearch, path: MasterPath, why: Missing) -> MasterPath:
    """Return the path to what accepts connections and does not answer as a store: "lost" or "foreign"."""
    return unjoined(path, why, is_alive=_reply(search, path) is not None)


def slow_names(search: MasterSearch, path: MasterPath) -> str:
    """Return why torch's store takes long although node 0 itself serves it there: a silent name server; else nothing.

    Node 0's word is an unproven datagram: it only keeps from accusing what answers, or from ending too early.
    """
    reply = _reply(search, path)
    if reply is None or not reply.serving or search.trust.key is not None:
        return ""
    theirs = tuple(server for server in reply.silent_servers[:_MOST_SERVERS] if _is_server(server))
    silent = {"this node": silent_servers(), "node 0": theirs}
    server_texts = [f"{servers_text(servers)} of {whose}" for whose, servers in silent.items() if servers]
    if not server_texts:
        return ""
    return f"{' and '.join(server_texts)} gave no answer, and torch's store, which node 0 serves there, waits for it"


def _is_server(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def is_elsewhere(search: MasterSearch, path: MasterPath) -> tuple[MasterPath, bool]:
    """Return the path with what datagrams say of node 0, and whether it is not what answers at the master address.

    It serves elsewhere, or says that it cannot serve.
    """
    asked = ask(path, search)
    if asked.direct is not None and asked.direct.given_up:
        return _given_up(path, asked.direct), True
    is_over = bool(asked.path.serves_at) and not asked.path.serving_confirmed
    return asked.path, is_over


def unmarked(search: MasterSearch, path: MasterPath, why: Missing) -> MasterPath:
    """Return the path to a TCPStore without the mark of this job: of another job, unless it is node 0's own.

    Then another process erased the mark, or node 0 ended or hung before it wrote it: no fault of the network.
    """
    if path.serving_confirmed or is_served(search, path):
        detail = "node 0 serves its store there, but what it wrote was erased: another program writes into it"
        return replace(path, outcome="lost", detail=detail, serving_confirmed=True)
    found = unanswered(search, path, why)
    if found.outcome == "lost":
        return found
    return replace(found, detail=f"a TCPStore answers there, but of another program or job ({why.detail})")


def _given_up(path: MasterPath, reply: KnockReply) -> MasterPath:
    """Return the path as node 0 explains it: if ncclcheck failed there, TCP says nothing about the network."""
    word = f"node 0 answers by datagram: {reply.given_up}"
    if reply.has_failed:
        return replace(path, outcome="lost", detail=word)
    path = replace(path, not_served=reply.given_up)
    return path if word in path.detail else replace(path, detail=f"{path.detail}; {word}")


def _unproven(search: MasterSearch) -> str:
    """Return what a datagram from the master address says of node 0 without this run's key; nothing where none does."""
    reply = unproven_reply(search.trust)
    if reply is None or not reply.given_up:
        return ""
    return f"a datagram from there says, without the key of this run: {reply.given_up[:_LONGEST_CLAIM]}"


def _announced(claim: str, say: Callable[[str], None]) -> str:
    if claim:
        say(f"{claim}. Nothing proves that this is node 0; trying on")
    return claim


def _knocked(path: MasterPath, search: MasterSearch) -> Knocked:
    addresses = () if isinstance(path.addresses, Missing) else path.addresses
    return Knocked(addresses, path.port, search.trust, search.launch.hosts)


def _message(path: MasterPath, search: MasterSearch, *, final: bool) -> KnockMessage:
    return KnockMessage(PROTOCOL, search.job_id, final, Knock(search.host, search.launch.node_rank, path))
