"""The store of a run that has a key: served by node 0 in its own memory, to callers who prove that they have the key.

torch's TCPStore lets any process that reaches it read, replace and erase all keys, and fill its memory. Here a caller
must prove within seconds, in one line, that it has the key; if there are too many, the oldest callers are dropped
first, those of the busiest address before others.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.pipe import answer_call
from ncclcheck.exchange.store.source_filter import admit_only
from ncclcheck.exchange.trust.handshake import (
    LINE_BYTES,
    PROTOCOL,
    Introduction,
    SealedSession,
    Welcome,
    is_member,
    new_banner,
    session_of,
    welcomed,
)
from ncclcheck.exchange.trust.run_key import RunKey
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.authentication import ForeignCause
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.line_buffer import LineBuffer

BACKLOG = 2048
MOST_STRANGERS = 256  # connections at once that have not proven themselves
BURST, PER_SECOND = 2048.0, 50.0  # callers of one address: all nodes may be behind one, a flood is more
_MOST_SOURCES = 1 << 16
_FOR_A_WHILE = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EINTR}
)


class Served(Struct, frozen=True):
    """What a server serves, and to which nodes. `credential` is what munge makes of the key, for those who ask it.

    `ranks_port`: of torch's store beside it, which admits the listed sources; 0: there is none.
    """

    memory: MemoryBackend
    key: RunKey
    trust: Trust
    prefix: str
    ranks_port: int = 0
    credential: Callable[[], str] = str


class SourceGate:
    """Lets so many callers of an address in at once, and then so many per second. State: what each has left."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def admits(self, address: str) -> bool:
        """Return whether one more caller from there may come in now."""
        source = _source(address)
        now = time.monotonic()
        left, since = self._left.get(source, (BURST, now))
        left = min(BURST, left + (now - since) * PER_SECOND)
        if len(self._left) >= _MOST_SOURCES and source not in self._left:
            self._left.clear()
        self._left[source] = (left - 1.0 if left >= 1.0 else left), now
        return left >= 1.0


def _source(address: str) -> str:
    """Return the address, of IPv6 the network: a host has as many addresses there as it likes."""
    if ":" not in address or address.startswith("::ffff:"):
        return address
    return ":".join(address.split(":")[:4])


class KeyedServer:
    """Serves a store on a socket that is bound, in a thread, until closed. State: the connections."""

    def __init__(self, held: socket.socket, served: Served) -> None:
        self.served = served
        self.port: int = held.getsockname()[1]
        self._strangers: dict[_Connection, str] = {}  # in order of arrival, with their addresses
        self._members: set[_Connection] = set()
        self._taking: set[asyncio.Task[Any]] = set()
        self._sources: set[str] = set()  # of members: their ranks come from there
        self._admitted: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="keyed-store", daemon=True)
        self._thread.start()
        self._held = held
        held.settimeout(None)
        held.listen(BACKLOG)
        self._accepting = threading.Thread(target=self._accept, name="keyed-accept", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Free the port, and cut off everybody."""
        if self._loop.is_closed():
            return
        with suppress(OSError):  # it ends the thread's wait
            self._held.shutdown(socket.SHUT_RDWR)
        self._held.close()
        self._accepting.join(timeout=timeouts.KEYED_CLOSE_S)
        with suppress(FutureTimeout):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(timeout=timeouts.KEYED_CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=timeouts.KEYED_CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()

    def arrived(self, connection: _Connection, address: str) -> None:
        """Count a stranger in, and another one out where there are too many."""
        if len(self._strangers) >= MOST_STRANGERS:
            busiest = Counter(self._strangers.values()).most_common(1)[0][0]
            oldest = next(known for known, origin in self._strangers.items() if origin == busiest)
            oldest.abort()
            self.left(oldest)
        self._strangers[connection] = address

    def proven(self, connection: _Connection) -> None:
        """Count a stranger as a member from now on, and let the ranks of its node in."""
        source = self._strangers.pop(connection, "")
        self._members.add(connection)
        if source and source not in self._sources:
            self._sources.add(source)
            self._loop.call_later(timeouts.KEYED_ADMITS_S, self._admit)

    def _admit(self) -> None:
        """Set the source filter of torch's store in the kernel: once for all nodes that join together."""
        if self._sources != self._admitted and self.served.ranks_port not in (0, self.port):
            self._admitted = set(self._sources)
            admit_only(self.served.ranks_port, self._admitted)

    def left(self, connection: _Connection) -> None:
        """Forget a connection that is closed."""
        self._strangers.pop(connection, None)
        self._members.discard(connection)

    def _accept(self) -> None:
        """Accept callers at once, so that a flood from one address keeps no other caller waiting."""
        gate = SourceGate()
        while True:
            try:
                made, address = self._held.accept()
            except OSError as error:
                if error.errno not in _FOR_A_WHILE:
                    return  # closed
                time.sleep(timeouts.KEYED_FULL_S)
                continue
            if gate.admits(address[0]):
                made.setblocking(False)
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._take, made)
            else:
                made.close()

    def _take(self, made: socket.socket) -> None:
        taking = self._loop.connect_accepted_socket(lambda: _Connection(self), made)
        task = self._loop.create_task(taking)
        self._taking.add(task)
        task.add_done_callback(self._taken)

    def _taken(self, task: asyncio.Task[Any]) -> None:
        self._taking.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that went away meanwhile

    async def _close(self) -> None:
        for connection in (*self._strangers, *self._members):
            connection.abort()
        await asyncio.sleep(0)  # transports close in the turn after


class _Connection(asyncio.Protocol):
    """One caller. State: what it proved, and the lines that are not whole yet."""

    def __init__(self, server: KeyedServer) -> None:
        self._server, self._served = server, server.served
        self._banner = new_banner(self._served.prefix, self._served.credential())
        self._lines = LineBuffer(LINE_BYTES)
        self._session: SealedSession | None = None
        self._transport: Any = None
        self._origin = ""
        self._waiting: deque[bytes] = deque()  # lines of a caller that does not read the answers
        self._is_full = False
        self._end: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """Cut the connection off."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Speak first."""
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._origin = peer[0] if peer else ""
        self._server.arrived(self, self._origin)
        self._end = asyncio.get_running_loop().call_later(timeouts.KEYED_HANDSHAKE_S, self._is_late)
        self._transport.write(encode(self._banner) + b"\n")

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget it."""
        if self._end is not None:
            self._end.cancel()
        self._server.left(self)

    def pause_writing(self) -> None:
        """Accept no more calls of a caller that does not read the answers."""
        self._is_full = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Take calls again."""
        self._is_full = False
        self._transport.resume_reading()
        self._work()

    def data_received(self, data: bytes) -> None:
        """Handle received data: first an introduction, later sealed calls of the store."""
        try:
            self._waiting.extend(self._lines.feed(data))
        except DecodeError:
            self._is_foreign()
        else:
            self._work()

    def _work(self) -> None:
        try:
            while self._waiting and not self._is_full:
                line = self._waiting.popleft()
                if self._session is None:
                    self._introduce(line)
                else:
                    call = self._session.receives.open(line)
                    answer = answer_call(call, self._served.memory)[:-1]
                    self._transport.write(self._session.sends.seal(answer) + b"\n")
        except DecodeError:
            self._is_foreign()

    def _is_foreign(self) -> None:
        self._drop("no-key" if self._session is None else "damaged")

    def _introduce(self, line: bytes) -> None:
        introduction = decode(line, Introduction, limit_bytes=LINE_BYTES)
        key = self._served.key
        if not is_member(self._banner, introduction, key):
            self._transport.write(encode(Welcome(PROTOCOL, refused="other-key")) + b"\n")
            self._drop("other-key" if introduction.proof else "no-key", introduction)
            return
        welcome = welcomed(self._banner, introduction, key, self._served.ranks_port)
        self._session = session_of(self._banner, introduction, key, is_caller=False)
        self._lines = LineBuffer()
        self._server.proven(self)
        if self._end is not None:
            self._end.cancel()
        self._transport.write(encode(welcome) + b"\n")

    def _is_late(self) -> None:
        self._drop("no-key")

    def _drop(self, cause: ForeignCause, introduction: Introduction | None = None) -> None:
        host, rank = (introduction.host, introduction.node_rank) if introduction is not None else ("", -1)
        self._served.trust.drop(self._origin, cause, host, rank)
        self._waiting.clear()
        self._transport.close()  # what was written still goes out
        self._server.left(self)
