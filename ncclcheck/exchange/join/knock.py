"""Datagrams between node 0 and a node that cannot join by TCP: which nodes are there, and is the store up.

They go to the number of the master port over UDP, which a rule for the TCP port does not touch. A knock is a claim:
it names a cause in the report and ends a wait; it is never taken as a fact about the cluster. Where UDP is blocked as
well nothing is lost but time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.half_open import half_open
from ncclcheck.exchange.trust.datagrams import LIMIT_BYTES as DATAGRAM_BYTES
from ncclcheck.exchange.trust.datagrams import DatagramSeal, answer_to
from ncclcheck.exchange.trust.munge import credential_for
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.snapshot import Knock

LIMIT_BYTES = 4096
_MOST_KNOCKS = 65536


class KnockMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A knock: the job of the node, and its own diagnosis so far. `final`: the node has given up."""

    protocol: str
    job_id: str
    final: bool
    knock: Knock


class KnockReply(Struct, frozen=True, forbid_unknown_fields=True):
    """The reply of node 0: is its store up; if it never will be, why (after FAILED: because of a bug).

    `answers_lost`: connection requests of the node arrived there, and its answers to them did not come back.
    """

    protocol: str
    serving: bool
    given_up: str = ""
    answers_lost: bool = False


PROTOCOL = "ncclcheck-knock-1"
FAILED = "ncclcheck failed there: "


class KnockListener:
    """Keeps the last knock of each node rank, on node 0. Its state is guarded by a lock, since a thread fills it."""

    def __init__(self, port: int, job_id: str, nnodes: int = 0, trust: Trust | None = None) -> None:
        self._port, self._job_id, self._nnodes = port, job_id, nnodes
        self._trust = trust or Trust()
        self._seal = DatagramSeal(self._trust, job_id, credential_for(self._trust.key))
        self._lock = threading.Lock()
        self._knocks: dict[int, KnockMessage] = {}
        self.serving = False
        self.given_up = ""
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
            came = self._seal.received(data, sender[0])
            if came.message is None:
                with contextlib.suppress(OSError):
                    _ = came.answer and receiver.sendto(came.answer, sender)
                continue
            try:
                message = decode(came.message, KnockMessage, limit_bytes=LIMIT_BYTES)
            except DecodeError:
                continue
            if message.protocol != PROTOCOL or message.job_id != self._job_id:
                continue
            # Node 0 knows this better than the node: a handshake that began 8 s ago and did not end is in the kernel.
            way = message.knock.master
            is_lost = way.outcome == "filtered" and sender[0] in half_open({self._port})
            with self._lock:
                if len(self._knocks) < _MOST_KNOCKS:
                    rank = self._rank_of(message.knock)
                    way, origin = replace(way, answers_lost=is_lost), self._origin(sender[0])
                    self._knocks[rank] = replace(message, knock=Knock(message.knock.host, rank, way, origin))
            reply = KnockReply(PROTOCOL, self.serving, self.given_up, is_lost)
            with contextlib.suppress(OSError):
                receiver.sendto(came.reply(encode(reply)), sender)


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
    """Where a node knocks, and how it knows node 0."""

    addresses: Sequence[str]
    port: int
    trust: Trust


def send_knock(knocked: Knocked, message: KnockMessage, wait_s: float) -> KnockReply | None:
    """Send the message and return the first well-formed reply within `wait_s`, or None."""
    data = encode(message)
    if len(data) > LIMIT_BYTES:
        return None
    deadline = Deadline(wait_s)
    for address in knocked.addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with contextlib.suppress(OSError, DecodeError), socket.socket(family, socket.SOCK_DGRAM) as caller:
            caller.settimeout(max(deadline.left(), 0.05))
            caller.connect((address, knocked.port))
            answer = answer_to(data, caller, knocked.trust, message.job_id)
            reply = decode(answer, KnockReply, limit_bytes=LIMIT_BYTES)
            if reply.protocol == PROTOCOL:
                return reply
    return None
