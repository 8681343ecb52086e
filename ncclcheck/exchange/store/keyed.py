"""The store of a run that has a key, as node 0 and the other nodes open it (`keyed_server` serves it)."""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import suppress

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.received_line import receive_line
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Backend, Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.keyed_server import KeyedServer
from ncclcheck.exchange.store.pipe import Pipe
from ncclcheck.exchange.trust.handshake import (
    LINE_BYTES,
    PROTOCOL,
    Banner,
    Caller,
    SealedSession,
    Welcome,
    introduced,
    is_node_0,
    read_banner,
    session_of,
)
from ncclcheck.exchange.trust.munge import key_in_credential
from ncclcheck.exchange.trust.run_key import RunKey, job_digest
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing

# A part with its HMAC, as base64 in JSON, fits a packet of the smallest usual path MTU (see `store.tcp`).
SMALL_PART_BYTES = 640
SMALL_DOCUMENT_BYTES = 512 * 1024
_OTHER_JOB = Missing("error", "the store of another job answers there")
_NO_KEY = Missing("unsupported", "what answers there does not ask for a key")


class KeyedStore(DeadlineStore):
    """A store whose calls are authenticated. `end` is its server on node 0, elsewhere its connection.

    `ranks` is torch's store that node 0 serves beside it, for a benchmark.
    """

    def __init__(
        self, backend: Backend, port: int, end: KeyedServer | socket.socket, ranks: Store | None = None
    ) -> None:
        super().__init__(backend, port)
        self._end, self.ranks, self._mark = end, ranks, secrets.token_hex(16).encode()
        self.node_0 = ""  # the address at which this node proved its key
        if isinstance(end, socket.socket):
            with suppress(OSError):  # the connection is broken, as the first call will tell
                self.node_0 = str(end.getpeername()[0])
        if ranks is not None:
            ranks.set(keys.RANKS_MARK, self._mark)

    def ranks_mark(self) -> str:
        """Return what happened to this run's mark in the ranks' store; "": it is there.

        Who writes there may also have written what the ranks tell each other.
        """
        found = self._mark if self.ranks is None else self.ranks.get(keys.RANKS_MARK)
        if isinstance(found, Missing):
            is_lost = self.ranks is None or self.ranks.lost is not None
            return "" if is_lost else "is gone"
        return "" if found == self._mark else "holds something else"

    def close(self) -> None:
        """Give up the store, and the port of one that is served here."""
        if isinstance(self._end, socket.socket):
            with suppress(OSError):  # it ends the thread that reads
                self._end.shutdown(socket.SHUT_RDWR)
        super().close()
        self._end.close()
        if self.ranks is not None:
            self.ranks.close()

    def _part_bytes(self, document_bytes: int) -> int:
        is_small = isinstance(self._end, socket.socket) and document_bytes <= SMALL_DOCUMENT_BYTES
        return SMALL_PART_BYTES if is_small else super()._part_bytes(document_bytes)


def join_keyed(address: tuple[str, int], trust: Trust, caller: Caller, deadline: Deadline) -> Store | Missing:
    """Return a client of the store at the address.

    Missing "denied": node 0 has another key, or this node has none. "unsupported": what answers there says nothing of
    a key. "error": it is the store of another job, or the connection breaks.
    """
    found: Store | Missing = Missing("timeout", "node 0 does not answer")
    while True:
        try:
            with socket.create_connection(address, max(deadline.left(timeouts.KEYED_BANNER_S), 0.1)) as made:
                now = _joined(made, trust, caller, deadline.within(timeouts.KEYED_HANDSHAKE_S))
                if found == _OTHER_JOB and now == _NO_KEY:
                    return found  # it has named its job: the deadline cut this attempt short
                found = now
        except (OSError, UnicodeError) as error:
            found = Missing("error", str(error)[:200])
        if not isinstance(found, Missing) or found.missing in ("denied", "unsupported") or deadline.passed:
            return found
        time.sleep(deadline.left(timeouts.MASTER_RETRY_S))


def _joined(made: socket.socket, trust: Trust, caller: Caller, deadline: Deadline) -> Store | Missing:
    try:
        banner = read_banner(receive_line(made, LINE_BYTES, deadline.within(timeouts.KEYED_BANNER_S)))
    except TimeoutError:
        banner = None
    if banner is None:
        return _NO_KEY
    if banner.job != job_digest(caller.prefix):
        return _OTHER_JOB
    key = _key_of(trust, banner)
    introduction = introduced(banner, caller, key if isinstance(key, RunKey) else None)
    made.sendall(encode(introduction) + b"\n")
    if isinstance(key, Missing):
        return key
    try:
        welcome = decode(receive_line(made, LINE_BYTES, deadline), Welcome, limit_bytes=LINE_BYTES)
    except DecodeError:
        return Missing("error", "what answers there is not ncclcheck")
    if welcome.refused or welcome.protocol != PROTOCOL or not is_node_0(banner, introduction, key, welcome):
        return Missing("denied", f"node 0 has another key than this node, whose key is from {key.by}")
    trust.key = key
    return _store(made, session_of(banner, introduction, key, is_caller=True), welcome.ranks_port)


def _key_of(trust: Trust, banner: Banner) -> RunKey | Missing:
    if trust.key is not None:
        return trust.key
    if not banner.munge:
        return Missing("denied", "node 0 asks for a key, and this node has none")
    return key_in_credential(banner.munge)


def _store(made: socket.socket, session: SealedSession, ranks_port: int) -> Store:
    duplicate = made.dup()
    duplicate.settimeout(None)
    return KeyedStore(Pipe(duplicate.fileno(), duplicate.fileno(), session=session), ranks_port, duplicate)
