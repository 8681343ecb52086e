"""Datagrams between node 0 and a node that cannot join by TCP: which nodes are there, and is the store up.

They go to the number of the master port over UDP, which a rule for the TCP port does not touch. A knock is a claim:
it names a cause in the report and ends a wait; it is never taken as a fact about the cluster. Where UDP is blocked as
well nothing is lost but time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.join.broadcast import BroadcastCall, broadcast
from ncclcheck.exchange.probe.dial import socket_address
from ncclcheck.exchange.probe.half_open import half_open
from ncclcheck.exchange.trust.datagrams import LIMIT_BYTES as DATAGRAM_BYTES
from ncclcheck.exchange.trust.datagrams import DatagramSeal, FirstDatagram, answer_to
from ncclcheck.exchange.trust.munge import credential_for
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.formats.odd_addresses import refuse_odd_addresses
from ncclcheck.model.snapshot import Knock

LIMIT_BYTES = 4096
_MOST_KNOCKS = 65536
_MOST_ADDRESSES = (
    8  # that are kept of a knock, and so much text: anybody may send one in the name of each node
)
_MOST_TEXT, _MOST_NAME = 300, 60
_RESTS = 20  # how much longer than a look at the kernel's connections took is no other look


class KnockMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A knock: the job of the node, and its own diagnosis so far. `final`: the node has given up."""

    protocol: str
    job_id: str
    final: bool
    knock: Knock


class KnockReply(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reply of node 0: is its store up; if it never will be, why; `has_failed`: because of a bug.

    `answers_lost`: connection requests of the node arrived there, and its answers to them did not come back.
    `relay`: it is not node 0 that replies, but a node that has joined it, at the address `serves_at`.
    `silent_servers`: name servers of node 0 that do not answer, for which its store waits with each node.
    """

    protocol: str
    serving: bool
    given_up: str = ""
    answers_lost: bool = False
    relay: bool = False
    serves_at: str = ""
    has_failed: bool = False
    silent_servers: tuple[str, ...] = ()


PROTOCOL = "ncclcheck-knock-1"
FAILED = "ncclcheck failed there: "


class KnockListener:
    """Keeps the last knock of each node rank, on node 0. Its state is guarded by a lock, since a thread fills it.

    `relays_for`: this is not node 0, but a node that has joined it at that address; `heard` gets what it hears.
    """

    def __init__(
        self,
        port: int,
        job_id: str,
        nnodes: int = 0,
        trust: Trust | None = None,
        *,
        relays_for: str = "",
        heard: Callable[[Knock], None] = lambda _: None,
    ) -> None:
        self._port, self._job_id, self._nnodes = port, job_id, nnodes
        self._relays_for, self._heard = relays_for, heard
        self._trust = trust or Trust()
        self._seal = DatagramSeal(self._trust, job_id, credential_for(self._trust.key))
        self._lock = threading.Lock()
        self._knocks: dict[int, KnockMessage] = {}
        self._half_open: tuple[float, frozenset[str]] = 0.0, frozenset()  # until when that is good enough
        self.serving = False
        self.given_up = ""
        self.has_failed = False
        self.silent_servers: tuple[str, ...] = ()
        self.say: Callable[[str], None] = lambda _: None
        self.answers_unread = (
            False  # also who has a key that this node 0 cannot use, which proves nothing to him
        )
        self._sockets: list[socket.socket] = []
        # Who will knock, and on which of our addresses, is not known before: as with the store itself.
        for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):  # noqa: S104
            with contextlib.suppress(OSError):
                self._sockets.append(_bound(family, address, port))
        self._threads = [
            threading.Thread(target=self._listen, args=(receiver,), name="knock", daemon=True)
            for receiver in self._sockets
        ]
        for thread in self._threads:
            thread.start()

    def final(self) -> dict[int, Knock]:
        """Return the nodes that said they cannot join, by node rank."""
        with self._lock:
            return {rank: message.knock for rank, message in self._knocks.items() if message.final}

    def wait_for_all(self, deadline: Deadline) -> None:
        """Wait until all other nodes have said that they cannot join, and so know why node 0 does not serve."""
        for _ in polls(deadline):
            if len(self.final()) >= self._nnodes - 1:
                break

    def _rank_of(self, knock: Knock) -> int:
        """Return the node's rank; for a node that has none before it joins, the highest rank that is still free."""
        if knock.node_rank >= 0:
            return knock.node_rank
        known = [rank for rank, message in self._knocks.items() if message.knock.host == knock.host]
        free = (rank for rank in range(self._nnodes - 1, 0, -1) if rank not in self._knocks)
        return known[0] if known else next(free, self._nnodes)

    def _origin(self, sender: str) -> str:
        """Return where a knock is from that anybody may have sent; nothing where it proved the key."""
        return sender if self._trust.key is None else ""

    def close(self) -> None:
        """Free the port."""
        for receiver in self._sockets:
            with contextlib.suppress(OSError):  # it is not connected, and yet this ends the thread's wait
                receiver.shutdown(socket.SHUT_RDWR)
            receiver.close()
        for thread in self._threads:  # the kernel keeps the port while one still waits there
            thread.join(timeouts.KNOCK_CLOSE_S)

    def _listen(self, receiver: socket.socket) -> None:
        while True:
            try:
                data, sender = receiver.recvfrom(DATAGRAM_BYTES + 1)
            except OSError:
                return  # closed
            if not data:
                continue  # nothing, or the end
            received = self._seal.received(data, sender[0])
            if received.message is None:
                with contextlib.suppress(OSError):
                    answer = received.answer or self._answer_to_refusal(data, sender[0])
                    _ = answer and receiver.sendto(answer, sender)
                continue
            message = self._read(received.message)
            if message is None:
                answer = encode(KnockReply(PROTOCOL, False, self.given_up)) if self.answers_unread else b""
                with contextlib.suppress(OSError):  # never more than came
                    _ = 0 < len(answer) <= len(data) and receiver.sendto(answer, sender)
                continue
            # Node 0 knows this better than the node: a handshake that began 8 s ago and did not end is in the kernel.
            path = message.knock.master
            is_lost = not self._relays_for and path.outcome == "filtered" and self._is_half_open(sender[0])
            reply = KnockReply(
                PROTOCOL,
                self.serving,
                given_up=self.given_up,
                answers_lost=is_lost,
                relay=bool(self._relays_for),
                serves_at=self._relays_for,
                has_failed=self.has_failed,
                silent_servers=self.silent_servers,
            )
            is_news = self._keep(message, sender[0], is_lost=is_lost)
            with contextlib.suppress(OSError):
                receiver.sendto(received.reply(encode(reply)), sender)
            if is_news:
                self._heard(replace(message.knock, origin=self._origin(sender[0])))

    def _read(self, data: bytes) -> KnockMessage | None:
        """Return the message of this job; None for anything else."""
        try:
            message = decode(data, KnockMessage, limit_bytes=LIMIT_BYTES)
            refuse_odd_addresses(message)
        except DecodeError:
            return None
        return message if (message.protocol, message.job_id) == (PROTOCOL, self._job_id) else None

    def _answer_to_refusal(self, data: bytes, sender: str) -> bytes:
        """Note what a node says without the key that refuses its own, and return the answer to that; else nothing.

        Anybody can say so: it ends no wait, and is quoted where the node does not come.
        """
        message = None if self._relays_for else self._read(data)
        if message is None or not (message.final and message.knock.master.outcome == "other-key"):
            return b""
        knock = message.knock
        if self._trust.note_refusal(sender, knock.host, knock.node_rank, knock.master.detail):
            self.say(
                f"{knock.host[:_MOST_NAME]} at {sender} says that it does not take part: "
                f"{knock.master.detail[:_MOST_TEXT]}. Nothing proves that it is a node of this run, "
                f"so node rank {knock.node_rank} may still join"
            )
        return encode(KnockReply(PROTOCOL, self.serving))

    def _is_half_open(self, address: str) -> bool:
        """Return whether a handshake of that address has not ended. Datagrams without end cost few looks."""
        began = time.monotonic()
        good_until, found = self._half_open
        if began >= good_until:
            found = half_open({self._port})
            now = time.monotonic()
            self._half_open = now + _RESTS * (now - began), found
        return address in found

    def _keep(self, message: KnockMessage, sender: str, *, is_lost: bool) -> bool:
        """Keep the message as the last one of its node; return whether it is the first that says it gave up."""
        with self._lock:
            if len(self._knocks) >= _MOST_KNOCKS:
                return False
            rank = message.knock.node_rank if self._relays_for else self._rank_of(message.knock)
            if self._nnodes and not -1 <= rank <= self._nnodes:
                return False  # no node of this job
            path, known = (
                replace(_shortened(message.knock.master), answers_lost=is_lost),
                self._knocks.get(rank),
            )
            knock = Knock(message.knock.host, rank, path, self._origin(sender))
            self._knocks[rank] = replace(message, knock=knock)
        return message.final and not (known and known.final)


def _shortened(path: MasterPath) -> MasterPath:
    """Return what is worth keeping of a path that a datagram tells."""
    addresses = path.addresses if isinstance(path.addresses, Missing) else path.addresses[:_MOST_ADDRESSES]
    return replace(path, name=path.name[:_MOST_TEXT], addresses=addresses, detail=path.detail[:_MOST_TEXT])


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        receiver.bind((address, port))
    except OSError:
        receiver.close()
        raise
    return receiver


class Knocked(Struct, frozen=True):
    """Where a node knocks, and how it knows node 0. `hosts`: the launcher's list of nodes, where it gives one."""

    addresses: Sequence[str]
    port: int
    trust: Trust
    hosts: Sequence[str] = ()


def send_knock(knocked: Knocked, message: KnockMessage, wait_s: float) -> KnockReply | None:
    """Send the message and return the first well-formed reply within `wait_s`, or None."""
    data = encode(message)
    if len(data) > LIMIT_BYTES:
        return None
    deadline = Deadline(wait_s)
    for address in knocked.addresses:
        with contextlib.suppress(OSError, DecodeError):
            family, target = socket_address(address, knocked.port, socket.SOCK_DGRAM)
            with socket.socket(family, socket.SOCK_DGRAM) as caller:
                caller.settimeout(max(deadline.left(), 0.05))
                caller.connect(target)
                reply = _reply_in(answer_to(data, caller, knocked.trust, message.job_id))
                if reply is not None:
                    return reply
    return None


def knock_everywhere(
    knocked: Knocked, message: KnockMessage, wait_s: float
) -> tuple[tuple[str, KnockReply], ...]:
    """Send the message to whoever shares a link with this node, and to the named hosts; return who replied, and what.

    With a key the first answers are challenges: then each member that gave one is asked once more alone.
    """
    data, trust = encode(message), knocked.trust
    if len(data) > LIMIT_BYTES:
        return ()
    first = FirstDatagram(data, trust, message.job_id)
    replies: list[tuple[str, KnockReply]] = []

    def is_answer(answer: bytes) -> bool:  # what is none takes no place of one that is
        return first.wants_more(answer) or (trust.key is None and _reply_in(answer) is not None)

    call = BroadcastCall(first.sent, knocked.port, knocked.hosts, is_answer)
    for address, answer in broadcast(call, wait_s):
        if first.wants_more(answer):
            reply = send_knock(replace(knocked, addresses=(address,)), message, wait_s)
        else:
            reply = _reply_in(answer)
        replies += [] if reply is None else [(address.partition("%")[0].removeprefix("::ffff:"), reply)]
    return tuple(replies)


def unproven_reply(trust: Trust) -> KnockReply | None:
    """Return what was last answered without the run's key from the master address itself; None where nothing was."""
    return _reply_in(trust.said_without_key)


def _reply_in(answer: bytes) -> KnockReply | None:
    try:
        reply = decode(answer, KnockReply, limit_bytes=LIMIT_BYTES)
    except DecodeError:
        return None
    return reply if reply.protocol == PROTOCOL else None
