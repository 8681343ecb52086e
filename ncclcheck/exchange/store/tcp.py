"""A store over torch's TCPStore, which node 0 or the launcher serves at the master address.

TCPStore's own timeouts do not cover a peer that accepts and then says nothing (seen with torch 2.13: the constructor
and `check` block without end): hence the thread of `deadline_store`.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from typing import Any

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore, first_line
from ncclcheck.exchange.store.torch_versions import (
    is_own_bug,
    is_set,
    make_store,
    read,
    read_all,
    set_all,
    takes_socket,
    wait_for,
)
from ncclcheck.facts.software.torch_trial import why_not_importable
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterOutcome

# Where large packets vanish, nodes can still meet and prove that they do. So connections to a port that node 0 holds
# have no packet that would not fit the smallest usual path MTU. Where the port is a launcher's, or torch takes no
# socket, documents travel in parts of that size, each acknowledged before the next; only a large one gets large parts.
PACKET_BYTES = 1024
SMALL_PART_BYTES = 1024
_LOG_LEVEL, _QUIET = "TORCH_CPP_LOG_LEVEL", ("ERROR", "FATAL", "2", "3")  # c10/util/Logging.cpp
_HAS_READ_IT = "torch" in sys.modules  # imported before this file, by other code
SMALL_DOCUMENT_BYTES = 512 * 1024


class TcpBackend:
    """A torch TCPStore, with this run's keys under a prefix."""

    def __init__(self, raw: Any, prefix: str) -> None:
        self._raw, self._prefix = raw, prefix

    def set(self, key: str, value: bytes) -> None:
        """Send the value, which the server does not acknowledge."""
        self._raw.set(self._prefix + key, value)

    def add(self, key: str, amount: int) -> int:
        """Add to the counter and return its new value."""
        return int(self._raw.add(self._prefix + key, amount))

    def read(self, key: str) -> bytes | None:
        """Return the value; None while it is not set."""
        return read(self._raw, self._prefix + key, is_awaited=not key.startswith(keys.POLLED))

    def read_all(self, value_keys: Sequence[str]) -> list[bytes] | None:
        """Return the values; None unless all are set, or where this torch cannot tell."""
        return read_all(self._raw, [self._prefix + key for key in value_keys])

    def set_all(self, values: Mapping[str, bytes]) -> None:
        """Send all these values at once."""
        set_all(self._raw, {self._prefix + key: value for key, value in values.items()})

    def wait_for(self, key: str, seconds: float) -> bytes | None:
        """Return the value as soon as it is set; None if it is not set by the deadline."""
        return wait_for(self._raw, self._prefix + key, seconds)

    def check(self, key: str) -> bool:
        """Return whether the key is set: an answer comes only after all that was sent before."""
        return is_set(self._raw, self._prefix + key)


class TcpStore(DeadlineStore):
    """The store over a TCPStore.

    The server drops a client that sends more than 8 MiB at once, hence documents in parts.
    (torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp, MAX_PAYLOAD_LEN.)

    `waits`: the server is told what this process waits for, and pushes it. Meanwhile the connection is occupied, so
    only one thread may use such a store. Where torch warns of each wait that is late, it polls all the same.
    """

    def __init__(self, backend: TcpBackend, port: int, *, waits: bool = False) -> None:
        super().__init__(backend, port)
        self._waits = waits and os.environ.get(_LOG_LEVEL, "") in _QUIET
        self._small_packets: bool | None = None

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the value as soon as it is set: the server tells. Missing as in every store."""
        while self._waits and not deadline.passed:
            seconds = deadline.left(timeouts.STORE_WAIT_S)
            value = self._call(partial(TcpBackend.wait_for, key=key, seconds=seconds))
            if value is not None:
                found: bytes | Missing = value
                return found
        return super().wait(key, deadline)

    def _part_bytes(self, document_bytes: int) -> int:
        return (
            SMALL_PART_BYTES
            if document_bytes <= SMALL_DOCUMENT_BYTES and not self._has_small_packets()
            else super()._part_bytes(document_bytes)
        )

    def _has_small_packets(self) -> bool:
        """Return whether node 0 says so; it does before it says that it serves, or never."""
        if self._small_packets is None:
            self._small_packets = not isinstance(self.get(keys.SMALL_PACKETS), Missing)
        return self._small_packets

    def _set_acknowledged(self, key: str, value: bytes) -> Missing | None:
        """Store the value, and ask the server something where what follows must not be in one packet with it."""
        failed = self.set(key, value)
        if failed is not None or self._has_small_packets():
            return failed
        answer = self._call(lambda backend: backend.check(key))
        return answer if isinstance(answer, Missing) else None


_one_import = threading.Lock()  # several threads wait for the one import


def load_torch() -> bool:
    """Import torch's store: worth doing early, in a thread, since it takes seconds."""
    # torch prints a warning per connection where reverse DNS cannot answer, and a C++ stack where a foreign program
    # answers: what matters of it is in our own report.
    if not _HAS_READ_IT:
        os.environ.setdefault(_LOG_LEVEL, "FATAL")
    with _one_import:
        failed = _failed_import()
    if failed is not None:
        raise failed
    return True


@cache
def _failed_import() -> Exception | None:
    """Return why torch cannot be imported, or None once it is.

    It is tried once: a second attempt after one that failed reads freed memory and may end the process by SIGSEGV,
    since torch._C adds its methods again to the list that the first module points into (torch/csrc/Module.cpp).
    """
    why_not = None if "torch" in sys.modules else why_not_importable()
    if why_not is not None:
        return (ImportError if why_not.missing == "unsupported" else MemoryError)(why_not.detail)
    try:
        from torch.distributed import TCPStore  # noqa: F401
    except Exception as error:  # whatever its modules and libraries raise
        return error
    return None


def hands_over() -> bool:
    """Return whether a store takes over a socket that listens. torch is imported by then."""
    from torch.distributed import TCPStore

    return takes_socket(TCPStore)


def serve(port: int | socket.socket, prefix: str, deadline: Deadline) -> Store | Missing:
    """Serve a store on all addresses, on `port` (0: any): a number, or a held socket.

    A held socket that listens is taken over. One that does not is released once the store listens beside it.
    Raises what is no fault of the machine or the network: it is a bug, and no finding may come of it.
    """

    def construct(tcp_store: Any, patience: timedelta) -> Any:
        options: dict[str, Any] = {"is_master": True, "wait_for_workers": False, "timeout": patience}
        if isinstance(port, int):
            return make_store(tcp_store, "127.0.0.1", port, **options)
        number = port.getsockname()[1]
        if port.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            # A duplicate: torch closes what it has taken, and whether it has taken it is not told where it fails.
            options["master_listen_fd"] = os.dup(port.fileno())
        return make_store(tcp_store, "127.0.0.1", number, **options)

    served: TcpStore | Missing | None = None
    limited = isinstance(port, socket.socket) and _limits_packets(port)
    try:
        served = _open(construct, prefix, deadline, serving=True)
        if limited and isinstance(served, TcpStore):
            served.set(keys.SMALL_PACKETS, b"1")
    finally:
        if isinstance(port, socket.socket):
            if not isinstance(served, TcpStore):
                with suppress(OSError):
                    port.shutdown(socket.SHUT_RDWR)  # no client may wait at a port that will not be served
            port.close()
    return served


def limit_packets(bound: socket.socket) -> None:
    """Let all connections to this socket, which does not listen yet, have small packets only, in both directions."""
    with suppress(OSError):  # a kernel that does not: documents then travel in small parts
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, PACKET_BYTES)


def _limits_packets(held: socket.socket) -> bool:
    """Return whether the socket listens, so that it will be the server's, and limits the packets (tcp(7))."""
    try:
        listens = held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        return bool(listens) and 0 < held.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) <= PACKET_BYTES
    except OSError:
        return False


def join(host: str, port: int, prefix: str, deadline: Deadline, *, waits: bool = False) -> Store | Missing:
    """Return a client of the store at `host`; Missing when nothing there speaks TCPStore's protocol in time.

    `waits` is TcpStore's. Raises what no network and no peer can cause: it is a bug, and no finding may come of it.
    """

    def construct(tcp_store: Any, patience: timedelta) -> Any:
        return make_store(tcp_store, host, port, is_master=False, wait_for_workers=False, timeout=patience)

    return _open(construct, prefix, deadline, serving=False, waits=waits)


def _open(
    construct: Callable[[Any, timedelta], Any],
    prefix: str,
    deadline: Deadline,
    *,
    serving: bool,
    waits: bool = False,
) -> TcpStore | Missing:
    imported = loaded_torch(deadline)
    if isinstance(imported, Missing):
        return imported
    seconds = max(deadline.left(), 0.5)

    def work() -> Any:
        from torch.distributed import TCPStore

        return construct(TCPStore, timedelta(seconds=max(seconds - 1.0, 0.5)))

    raw = _in_thread(work, seconds)
    if raw is None:
        return Missing("timeout", f"no TCPStore answer within {seconds:.0f} s")
    if not isinstance(raw, Exception):
        return TcpStore(TcpBackend(raw, prefix), int(raw.port), waits=waits)
    if is_own_bug(raw, serving=serving):
        raise raw
    return Missing("error", first_line(raw))


def loaded_torch(deadline: Deadline) -> Missing | None:
    """Return None once torch is imported; Missing "unsupported" when it cannot be, "timeout" when it is late.

    Importing it from a slow filesystem may take a minute and says nothing about a store: wait for it before the time
    for a store begins.
    """
    seconds = max(deadline.left(timeouts.TORCH_IMPORT_S), 0.5)
    result = _in_thread(load_torch, seconds)
    if isinstance(result, MemoryError):  # the job itself may have room
        return Missing("timeout", str(result))
    if isinstance(result, Exception):
        return Missing("unsupported", f"torch cannot be imported: {first_line(result)}")
    return None if result else Missing("timeout", f"importing torch took longer than {seconds:.0f} s")


def torch_word(failed: Missing) -> MasterOutcome:
    """Return the outcome of a node's path to the master where its torch is not there."""
    return "torch-late" if failed.missing == "timeout" else "torch-broken"


def _in_thread(function: Callable[[], Any], seconds: float) -> Any:
    """Return what the function returned or raised; None when it did not end in time: its thread is abandoned."""
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work() -> None:
        try:
            ended.put(function())
        except Exception as error:  # DistNetworkError, DistStoreError, RuntimeError, ImportError, OSError
            ended.put(error)

    threading.Thread(target=work, name="store-open", daemon=True).start()
    try:
        return ended.get(timeout=seconds)
    except queue.Empty:
        return None
