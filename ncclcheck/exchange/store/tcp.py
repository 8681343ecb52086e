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
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore, first_line
from ncclcheck.exchange.store.torch_versions import is_own_bug, is_set, make_store, read, takes_socket
from ncclcheck.facts.software.torch_trial import why_not_importable
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterOutcome

# Documents travel in parts that fit a packet of the smallest usual path MTU, each acknowledged before the next: where
# large packets vanish, nodes can still meet and prove that they do. Only a large document gets large parts.
SMALL_PART_BYTES = 1024
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
        return read(self._raw, self._prefix + key)

    def check(self, key: str) -> bool:
        """Return whether the key is set: an answer comes only after all that was sent before."""
        return is_set(self._raw, self._prefix + key)


class TcpStore(DeadlineStore):
    """The store over a TCPStore.

    The server drops a client that sends more than 8 MiB at once, hence documents in parts.
    (torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp, MAX_PAYLOAD_LEN.)
    """

    def _part_bytes(self, document_bytes: int) -> int:
        return (
            SMALL_PART_BYTES
            if document_bytes <= SMALL_DOCUMENT_BYTES
            else super()._part_bytes(document_bytes)
        )

    def _set_acknowledged(self, key: str, value: bytes) -> Missing | None:
        """Store the value, and ask the server something: what follows is not sent in one packet with it."""
        failed = self.set(key, value)
        answer = failed or self._call(lambda backend: backend.check(key))
        return answer if isinstance(answer, Missing) else None


def load_torch() -> bool:
    """Import torch's store: worth doing early, in a thread, since it takes seconds."""
    # torch prints a warning per connection where reverse DNS cannot answer, and a C++ stack where a foreign program
    # answers: what matters of it is in our own report.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    why_not = None if "torch" in sys.modules else why_not_importable()
    if why_not is not None:
        raise (ImportError if why_not.missing == "unsupported" else MemoryError)(why_not.detail)
    from torch.distributed import TCPStore

    return TCPStore is not None


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
    try:
        served = _open(construct, prefix, deadline, serving=True)
    finally:
        if isinstance(port, socket.socket):
            if not isinstance(served, TcpStore):
                with suppress(OSError):
                    port.shutdown(socket.SHUT_RDWR)  # no client may wait at a port that will not be served
            port.close()
    return served


def join(host: str, port: int, prefix: str, deadline: Deadline) -> Store | Missing:
    """Return a client of the store at `host`; Missing when nothing there speaks TCPStore's protocol in time.

    Raises what no network and no peer can cause: it is a bug, and no finding may come of it.
    """

    def construct(tcp_store: Any, patience: timedelta) -> Any:
        return make_store(tcp_store, host, port, is_master=False, wait_for_workers=False, timeout=patience)

    return _open(construct, prefix, deadline, serving=False)


def _open(
    construct: Callable[[Any, timedelta], Any], prefix: str, deadline: Deadline, *, serving: bool
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
        return TcpStore(TcpBackend(raw, prefix), int(raw.port))
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
