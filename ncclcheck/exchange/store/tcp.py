"""torch's TCPStore with a deadline on every call: the place where the nodes of a run meet.

TCPStore's own timeouts do not cover a peer that accepts and then says nothing (seen with torch 2.13: the constructor
and `check` block without end), so every call runs in a thread of its own that can be abandoned. Values are bytes and
are decoded strictly by the callers; nothing is ever unpickled.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeAlias

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.versions import is_own_bug, make_store
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterOutcome

CALL_S = 8.0
CLOSE_S = 1.0
IMPORT_S = 60.0
# Documents travel in parts that fit a packet of the smallest usual path MTU, each acknowledged before the next: where
# large packets vanish, nodes can still meet and prove that they do. Only a large document gets large parts.
SMALL_PART_BYTES = 1024
LARGE_PART_BYTES = 4 * 1024 * 1024
SMALL_DOCUMENT_BYTES = 512 * 1024
MOST_PARTS = 1024
_FIRST_POLL_S, _LAST_POLL_S = 0.005, 0.1


_Call: TypeAlias = tuple[Callable[[], Any], "queue.SimpleQueue[Any]"]


class TcpStore:
    """A TCPStore behind a thread. After one call has not come back the store counts as lost, for good."""

    small_part_bytes = SMALL_PART_BYTES

    def __init__(self, raw: Any, prefix: str) -> None:
        self._raw, self._prefix = raw, prefix
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self.lost: Missing | None = None
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The store is lost from now on, and one that is served here has left its port, unless a call hangs in it."""
        self.lost = self.lost or Missing("absent", "the store is closed")
        self._raw = None
        self._calls.put(None)
        self._thread.join(CLOSE_S)

    @property
    def port(self) -> int:
        """The TCP port of the server this store talks to."""
        return int(self._raw.port)

    def set(self, key: str, value: bytes) -> Missing | None:
        """The value is stored; or the reason why not."""
        answer = self._call(lambda: self._raw.set(self._prefix + key, value))
        return answer if isinstance(answer, Missing) else None

    def add(self, key: str, amount: int) -> int | Missing:
        """The counter after adding."""
        answer = self._call(lambda: self._raw.add(self._prefix + key, amount))
        return answer if isinstance(answer, Missing) else int(answer)

    def get(self, key: str) -> bytes | Missing:
        """The value, or Missing: "absent" while nobody has set it, another reason when the store is lost."""
        name = self._prefix + key
        answer = self._call(lambda: bytes(self._raw.get(name)) if self._raw.check([name]) else None)
        return Missing("absent", f"{key} is not set") if answer is None else answer

    def wait_document(self, key: str, deadline: Deadline) -> bytes | Missing:
        """The document as soon as it is whole; Missing "timeout" at the deadline, at once when the store is lost."""
        count = self.wait(key, deadline)
        return count if isinstance(count, Missing) else self.get_document(key)

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """The value as soon as it is there; Missing "timeout" at the deadline, at once when the store is lost."""
        for _ in polls(deadline):
            value = self.get(key)
            if not (isinstance(value, Missing) and value.missing == "absent"):
                return value
        return Missing("timeout", f"{key} did not come in time")

    def set_document(self, key: str, value: bytes) -> Missing | None:
        """A value of any size is stored, in parts: the server drops a client that sends more than 8 MiB at once.

        (torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp, MAX_PAYLOAD_LEN.)
        """
        size = self.small_part_bytes if len(value) <= SMALL_DOCUMENT_BYTES else LARGE_PART_BYTES
        starts = range(0, max(len(value), 1), size)
        for number, start in enumerate(starts):
            failed = self._set_acknowledged(f"{key}/{number}", value[start : start + size])
            if failed is not None:
                return failed
        return self._set_acknowledged(key, str(len(starts)).encode())

    def _set_acknowledged(self, key: str, value: bytes) -> Missing | None:
        """Stored, and the server has answered a question after it: what follows is not sent in one packet with it."""
        failed = self.set(key, value)
        answer = failed or self._call(lambda: self._raw.check([self._prefix + key]))
        return answer if isinstance(answer, Missing) else None

    def get_document(self, key: str) -> bytes | Missing:
        """What `set_document` stored under the key."""
        count = self.get(key)
        if isinstance(count, Missing):
            return count
        if not count.isdigit() or int(count) > MOST_PARTS:
            return Missing("error", f"{key} is not a document of ours")
        parts = []
        for number in range(int(count)):
            part = self.get(f"{key}/{number}")
            if isinstance(part, Missing):
                return part
            parts.append(part)
        return b"".join(parts)

    def _call(self, function: Callable[[], Any]) -> Any:
        if self.lost is not None:
            return self.lost
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls.put((function, answer))
        try:
            result = answer.get(timeout=CALL_S)
        except queue.Empty:
            result = Missing("timeout", f"the store did not answer within {CALL_S:.0f} s")
        if isinstance(result, Missing):
            self.lost = result
        return result

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            function, answer = call
            try:
                answer.put(function())
            except Exception as error:  # torch raises several types here; each means that the store is gone
                answer.put(Missing("error", first_line(error)))


def polls(deadline: Deadline) -> Iterable[None]:
    """Yields at once and then at growing intervals, for the last time at the deadline."""
    interval = _FIRST_POLL_S
    while True:
        last = deadline.passed
        yield
        if last:
            return
        time.sleep(deadline.left(interval))
        interval = min(interval * 1.5, _LAST_POLL_S)


def load_torch() -> bool:
    """torch's store is imported: worth doing early, in a thread, since it takes seconds."""
    # torch prints a warning per connection where reverse DNS cannot answer, and a C++ stack where a foreign program
    # answers: what matters of it is in our own report.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    from torch.distributed import TCPStore

    return TCPStore is not None


def serve(port: int | socket.socket, prefix: str, deadline: Deadline) -> TcpStore | Missing:
    """A store served by this process on all addresses, on `port` (0: any): a number, or a held one to take over.

    Raises what is no fault of the machine or the network: it is a bug, and no finding may come of it.
    """

    def construct(tcp_store: Any, patience: timedelta) -> Any:
        options = {"is_master": True, "wait_for_workers": False, "timeout": patience}
        if isinstance(port, int):
            return make_store(tcp_store, "127.0.0.1", port, **options)
        # A duplicate: torch closes what it has taken, and whether it has taken it is not told where it fails.
        number, taken = port.getsockname()[1], os.dup(port.fileno())
        return make_store(tcp_store, "127.0.0.1", number, master_listen_fd=taken, **options)

    served: TcpStore | Missing | None = None
    try:
        served = _open(construct, prefix, deadline, serving=True)
    finally:
        if isinstance(port, socket.socket):
            if not isinstance(served, TcpStore):
                with suppress(OSError):
                    port.shutdown(socket.SHUT_RDWR)  # nobody may wait at a port behind which nothing will be
            port.close()
    return served


def join(host: str, port: int, prefix: str, deadline: Deadline) -> TcpStore | Missing:
    """A client of the store at `host`; Missing when nothing there speaks TCPStore's protocol in time.

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
        return TcpStore(raw, prefix)
    if is_own_bug(raw, serving=serving):
        raise raw
    return Missing("error", first_line(raw))


def loaded_torch(deadline: Deadline) -> Missing | None:
    """None once torch is imported; Missing "unsupported" when it cannot be, "timeout" when it is not in time.

    Importing it from a slow filesystem may take a minute and says nothing about a store: wait for it before the time
    for a store begins.
    """
    seconds = max(deadline.left(IMPORT_S), 0.5)
    result = _in_thread(load_torch, seconds)
    if isinstance(result, Exception):
        return Missing("unsupported", f"torch cannot be imported: {first_line(result)}")
    return None if result else Missing("timeout", f"importing torch took longer than {seconds:.0f} s")


def torch_word(failed: Missing) -> MasterOutcome:
    """How a node's way to the master ends where its torch is not there."""
    return "torch-late" if failed.missing == "timeout" else "torch-broken"


def _in_thread(function: Callable[[], Any], seconds: float) -> Any:
    """What the function returned or raised; None when it did not end in time, and then its thread is abandoned."""
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


def first_line(error: Exception) -> str:
    """Return the error in one line, with its type."""
    kind = "" if type(error) is OSError else f"{type(error).__name__}: "  # the words of a relay say it all
    return f"{kind}{error}".splitlines()[0][:300]
