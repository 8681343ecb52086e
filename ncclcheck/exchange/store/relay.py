"""The words of a store that is reached through a pipe: one call, one answer, each a line of strict JSON."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.lines import LINE_LIMIT_BYTES

VALUE_LIMIT_BYTES = 4 * 1024 * 1024  # JSON carries bytes as base64, a third longer, and so they fit a line
_KEY_LIMIT = 1024


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node wants of the store. "look" (folders only) searches for the run."""

    id: int
    op: Literal["set", "add", "read", "look"]
    key: str = ""
    value: bytes = b""
    amount: int = 0


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """What came of the call of that id. `value` None: nobody has set the key. `error`: why it failed."""

    id: int
    value: bytes | None = None
    count: int = 0
    error: str = ""


class Backend(Protocol):
    """Where the values are. Each method raises OSError where it cannot do what it says."""

    def set(self, key: str, value: bytes) -> None:
        """The value is stored."""
        ...

    def add(self, key: str, amount: int) -> int:
        """The counter after adding."""
        ...

    def read(self, key: str) -> bytes | None:
        """The value, or the counter as a number; None while nobody has set it."""
        ...

    def look(self) -> bytes:
        """What is known of the place itself."""
        ...


def answer(line: bytes, backend: Backend) -> bytes:
    """The answer to a call, as a line. Raises DecodeError for what is no call."""
    call = decode(line, Call, limit_bytes=LINE_LIMIT_BYTES)
    if len(call.key) > _KEY_LIMIT or len(call.value) > VALUE_LIMIT_BYTES:
        raise DecodeError(f"a key of {len(call.key)} letters with {len(call.value)} bytes is none of ours")
    try:
        done = _perform(call, backend)
    except OSError as error:
        done = Answer(call.id, error=_words(error))
    return encode(done) + b"\n"


def _words(error: OSError) -> str:
    """`/shared/.ncclcheck-...: No space left on device`."""
    text = error.strerror or f"{type(error).__name__}: {error}"
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return f"{where}{text}".splitlines()[0][:300]


def _perform(call: Call, backend: Backend) -> Answer:
    if call.op == "set":
        backend.set(call.key, call.value)
        return Answer(call.id)
    if call.op == "add":
        return Answer(call.id, count=backend.add(call.key, call.amount))
    return Answer(call.id, value=backend.look() if call.op == "look" else backend.read(call.key))
