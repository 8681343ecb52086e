"""A store that another process has, reached through a pipe: one call, one answer, each a line of strict JSON."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.store.base import VALUE_LIMIT_BYTES, Backend
from ncclcheck.exchange.trust.handshake import SealedSession
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.line_buffer import LINE_LIMIT_BYTES, LineBuffer

_KEY_LIMIT = 1024
_READ_BYTES = 1 << 16


class PipeCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call of the store by the process at the other end. "look" (folders only) searches for the run."""

    id: int
    op: Literal["set", "add", "read", "look"]
    key: str = ""
    value: bytes = b""
    amount: int = 0


class PipeAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of the call with that id. `value` None: the key is not set. `error`: why it failed."""

    id: int
    value: bytes | None = None
    count: int = 0
    error: str = ""


class LookBackend(Backend, Protocol):
    """A backend that also says what is known of the place where the values are."""

    def look(self) -> bytes:
        """Return what is known of the place itself, as JSON."""
        ...


def answer_call(line: bytes, backend: LookBackend) -> bytes:
    """Return the answer to a call, as a line. Raises DecodeError for a line that is not a call."""
    call = decode(line, PipeCall, limit_bytes=LINE_LIMIT_BYTES)
    if len(call.key) > _KEY_LIMIT or len(call.value) > VALUE_LIMIT_BYTES:
        raise DecodeError(
            f"a key of {len(call.key)} letters with {len(call.value)} bytes is not a call of ncclcheck"
        )
    try:
        done = _perform(call, backend)
    except OSError as error:
        done = PipeAnswer(call.id, error=_error_text(error))
    return encode(done) + b"\n"


def _error_text(error: OSError) -> str:
    """Return the text of the error with its file: `/shared/.ncclcheck-...: No space left on device`."""
    text = error.strerror or f"{type(error).__name__}: {error}"
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return f"{where}{text}".splitlines()[0][:300]


def _perform(call: PipeCall, backend: LookBackend) -> PipeAnswer:
    if call.op == "set":
        backend.set(call.key, call.value)
        return PipeAnswer(call.id)
    if call.op == "add":
        return PipeAnswer(call.id, count=backend.add(call.key, call.amount))
    return PipeAnswer(call.id, value=backend.look() if call.op == "look" else backend.read(call.key))


class Pipe:
    """The backend of the process at the other end of two pipes. State: the calls made, and the lines received.

    `at_the_end` is called in a thread as soon as the other end is gone. With a `session` every line is authenticated.
    """

    def __init__(
        self,
        reader: int,
        writer: int,
        at_the_end: Callable[[], None] = lambda: None,
        session: SealedSession | None = None,
    ) -> None:
        self._reader, self._writer, self._at_the_end, self._session = reader, writer, at_the_end, session
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._calls = 0
        self.begins_lines = False  # others write there as well, and may leave a line without an end
        self._thread = threading.Thread(target=self._read, name="pipe", daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Return whether the other end closed by then, so that the pipe is read no more."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def set(self, key: str, value: bytes) -> None:
        """Store the value."""
        self._ask("set", key, value)

    def add(self, key: str, amount: int) -> int:
        """Add to the counter and return its new value."""
        return self._ask("add", key, amount=amount).count

    def read(self, key: str) -> bytes | None:
        """Return the value; None while it is not set."""
        return self._ask("read", key).value

    def look(self) -> bytes:
        """Return what the other end knows of the place itself."""
        return self._ask("look").value or b"{}"

    def next_line(self, seconds: float) -> bytes | None:
        """Return a line that answers no call; None where none arrived in time or the other end closed."""
        try:
            return self._lines.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            return None

    def _ask(
        self, op: Literal["set", "add", "read", "look"], key: str = "", value: bytes = b"", amount: int = 0
    ) -> PipeAnswer:
        self._calls += 1
        call = encode(PipeCall(self._calls, op, key, value, amount))
        line_start = b"\n" if self.begins_lines else b""
        write_all(
            self._writer, line_start + (self._session.sends.seal(call) if self._session else call) + b"\n"
        )
        line = self._lines.get()
        if line is None:
            self._lines.put(None)
            raise OSError("the other end is gone")
        found = decode(line, PipeAnswer)
        if found.id != self._calls:
            raise OSError(f"answer {found.id} came to call {self._calls}")
        if found.error:
            raise OSError(found.error)
        return found

    def _read(self) -> None:
        lines = LineBuffer()
        try:
            while data := os.read(self._reader, _READ_BYTES):
                for line in lines.feed(data):
                    self._lines.put(self._session.receives.open(line) if self._session else line)
        except (OSError, DecodeError):
            pass  # as good as gone
        self._lines.put(None)
        self._at_the_end()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` into the pipe. Raises OSError where it is read no more."""
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # ssh leaves the streams that it shares with us non-blocking
            time.sleep(timeouts.PIPE_FULL_POLL_S)
