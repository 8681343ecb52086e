"""The verdict from node 0 itself: asked for at the master address, where no stranger can answer.

Any process that reaches the store can write a verdict. Before a node starts a command, it asks node 0 directly, by a
connection to the master address that its own launcher gave it. Node 0 says what its verdict is, whether it was judged
by what this node really sent, and which report belongs to it. The store only tells the port.
"""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import suppress

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.received_line import receive_line
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError

PROTOCOL = "ncclcheck-verdict-1"
LINE_BYTES = 64 * 1024
_FIRST_PORT, _LAST_PORT = 1024, 65535
_MOST_AT_ONCE = 256


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """Who asks, in which run, and the digest of each message that it sent (key -> digest)."""

    protocol: str
    challenge: str
    nonce: str
    ticket: int
    sent: dict[str, str]


class VerdictConfirmation(Struct, frozen=True, forbid_unknown_fields=True):
    """Node 0's verdict; None while there is none. `changed`: the keys under which it read something else."""

    protocol: str
    challenge: str
    exit_code: int | None
    changed: tuple[str, ...] = ()
    report: str = ""  # the digest of the report's document


class GivenVerdict(Struct, frozen=True):
    """The verdict that node 0 has given, the digest of its report, and of what it had read (key -> digest)."""

    exit_code: int
    report: str
    read: dict[str, str]


class VerdictServer:
    """Node 0's answers, on a port of its own. State: the verdict, once there is one."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._given: GivenVerdict | None = None
        self._room = threading.Semaphore(_MOST_AT_ONCE)
        self._listener = _listener()
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="verdict", daemon=True)
        self._thread.start()

    def give(self, verdict: GivenVerdict) -> None:
        """Answer with this verdict from now on."""
        self._given = verdict

    def close(self) -> None:
        """Free the port."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeouts.VERDICT_CLOSE_S)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            if not self._room.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._answer, args=(connection,), name="verdict", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, DecodeError):
            question = decode(
                receive_line(connection, LINE_BYTES, Deadline(timeouts.VERDICT_ASK_S)),
                Question,
                limit_bytes=LINE_BYTES,
            )
            if question.protocol == PROTOCOL and question.nonce == self._nonce:
                connection.sendall(encode(self._confirmation(question)) + b"\n")
        self._room.release()

    def _confirmation(self, question: Question) -> VerdictConfirmation:
        verdict = self._given
        if verdict is None:
            return VerdictConfirmation(PROTOCOL, question.challenge[:64], None)
        # A late answer was not judged; of a node without facts nothing was.
        unread = {keys.facts(question.ticket): ""}
        changed = tuple(
            key
            for key, digest in question.sent.items()
            if verdict.read.get(key, unread.get(key, digest)) != digest
        )
        return VerdictConfirmation(
            PROTOCOL, question.challenge[:64], verdict.exit_code, changed[:8], verdict.report
        )


def serve_verdict(store: Store, nonce: str) -> VerdictServer | None:
    """Return where the others ask node 0 for its verdict; None if no port is free: then no node starts anything."""
    try:
        server = VerdictServer(nonce)
    except OSError:
        return None
    store.set(keys.VERDICT_PORT, str(server.port).encode())
    return server


class VerdictAsker(Struct, frozen=True):
    """The asking process: the store of its run, the run's nonce, and its ticket."""

    store: RecordingStore
    nonce: str
    ticket: int


def ask_verdict(host: str, port: int, asker: VerdictAsker, sent: dict[str, str]) -> VerdictConfirmation | str:
    """Return what node 0 at `host` confirms to the sender of these messages, or why it did not answer."""
    if not _FIRST_PORT <= port <= _LAST_PORT:
        return f"port {port} is none of a listener"
    deadline = Deadline(timeouts.VERDICT_ASK_S)
    question = Question(PROTOCOL, secrets.token_hex(16), asker.nonce, asker.ticket, sent)
    try:
        with socket.create_connection((host, port), timeouts.VERDICT_ASK_S) as connection:
            connection.settimeout(deadline.left(timeouts.VERDICT_ASK_S))
            connection.sendall(encode(question) + b"\n")
            line = receive_line(connection, LINE_BYTES, deadline)
            answer = decode(line, VerdictConfirmation, limit_bytes=LINE_BYTES)
    except OSError as error:
        return f"node 0 did not confirm it at {host} port {port}: {error}"[:200]
    except DecodeError:
        return f"what answers at {host} port {port} is not node 0"
    if (answer.protocol, answer.challenge) != (PROTOCOL, question.challenge):
        return f"what answers at {host} port {port} is not node 0"
    return answer


def _listener() -> socket.socket:
    """On all addresses, as the store."""
    if socket.has_dualstack_ipv6():
        with suppress(OSError):
            return socket.create_server(
                ("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_MOST_AT_ONCE
            )
    return socket.create_server(("", 0), backlog=_MOST_AT_ONCE)
