"""A store that is reached otherwise than by TCP: in this process, or through a pipe to who has it."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Literal

from ncclcheck.exchange.store.relay import VALUE_LIMIT_BYTES, Answer, Backend, Call
from ncclcheck.exchange.store.tcp import TcpStore
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.lines import Lines

_READ_BYTES = 1 << 16


class RelayedStore(TcpStore):
    """The store that `backend` has, with a deadline on every call as any other.

    `ranks_port` is that of the TCPStore in which the ranks of a benchmark meet, at the master address.
    """

    small_part_bytes = VALUE_LIMIT_BYTES

    def __init__(self, backend: Backend, port: int) -> None:
        super().__init__(backend, "")
        self.backend, self.ranks_port = backend, port

    @property
    def port(self) -> int:
        """The TCP port at which the ranks of a benchmark meet."""
        return self.ranks_port

    def get(self, key: str) -> bytes | Missing:
        """The value, or Missing: "absent" while nobody has set it, another reason when the store is lost."""
        answer = self._call(lambda: self.backend.read(key))
        return Missing("absent", f"{key} is not set") if answer is None else answer

    def ask(self, question: Callable[[], bytes]) -> bytes | Missing:
        """What the backend says to another question, with the deadline of every call."""
        found: bytes | Missing = self._call(question)
        return found

    def _set_acknowledged(self, key: str, value: bytes) -> Missing | None:
        return self.set(key, value)  # every call is answered


class Pipe:
    """The backend at the other end of two pipes. State: the calls made, and the lines that came.

    `at_the_end` is called in a thread as soon as the other end is gone.
    """

    def __init__(self, reader: int, writer: int, at_the_end: Callable[[], None] = lambda: None) -> None:
        self._reader, self._writer, self._at_the_end = reader, writer, at_the_end
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._calls = 0
        self._thread = threading.Thread(target=self._read, name="pipe", daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Whether the other end is gone by then, and nobody reads the pipe any more."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def set(self, key: str, value: bytes) -> None:
        """The value is stored."""
        self._ask("set", key, value)

    def add(self, key: str, amount: int) -> int:
        """The counter after adding."""
        return self._ask("add", key, amount=amount).count

    def read(self, key: str) -> bytes | None:
        """The value; None while nobody has set it."""
        return self._ask("read", key).value

    def look(self) -> bytes:
        """What the other end knows of the place itself."""
        return self._ask("look").value or b"{}"

    def next_line(self, seconds: float) -> bytes | None:
        """A line that answers no call; None where none came in time, or the other end is gone."""
        try:
            return self._lines.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            return None

    def _ask(
        self, op: Literal["set", "add", "read", "look"], key: str = "", value: bytes = b"", amount: int = 0
    ) -> Answer:
        self._calls += 1
        write_all(self._writer, encode(Call(self._calls, op, key, value, amount)) + b"\n")
        line = self._lines.get()
        if line is None:
            self._lines.put(None)
            raise OSError("the other end is gone")
        found = decode(line, Answer)
        if found.id != self._calls:
            raise OSError(f"answer {found.id} came to call {self._calls}")
        if found.error:
            raise OSError(found.error)
        return found

    def _read(self) -> None:
        lines = Lines()
        try:
            while data := os.read(self._reader, _READ_BYTES):
                for line in lines.feed(data):
                    self._lines.put(line)
        except (OSError, DecodeError):
            pass  # as good as gone
        self._lines.put(None)
        self._at_the_end()


def write_all(descriptor: int, data: bytes) -> None:
    """All of `data` is in the pipe. Raises OSError where nobody reads it any more."""
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except (
            BlockingIOError
        ):  # ssh leaves its standard streams non-blocking, and whoever shares them with it
            time.sleep(0.005)
