"""A store with a deadline on every call, over any backend.

A backend may block for ever, so every call runs in a thread of its own that can be abandoned. Values are bytes and are
decoded strictly by the callers; nothing is ever unpickled.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from ncclcheck import timeouts
from ncclcheck.exchange.awake import awake_s
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.store.base import TOGETHER, VALUE_LIMIT_BYTES, Backend, BatchBackend
from ncclcheck.exchange.store.torch_versions import is_own_bug
from ncclcheck.model.fact import Missing

MOST_PARTS = 1024
_MOST_DIGITS = 4  # of the number of parts
_INLINE = b"="  # begins the value of a document that is in one piece; else it is the number of parts
_Call: TypeAlias = tuple[Callable[[], Any], "queue.SimpleQueue[Any]"]


class DeadlineStore:
    """The `store.base.Store` of a backend, which is called in a thread.

    A call that has not come back in time, or has failed, loses the store for good. One that failed by a bug raises it.
    """

    def __init__(self, backend: Backend, port: int) -> None:
        self._backend: Backend | None = backend
        self.port = port
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lost: Missing | None = None
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> Missing | None:
        """Return why the store cannot be used any more; None while it can."""
        return self._lost

    def close(self) -> None:
        """Give up the store. One that is served here leaves its port, unless a call hangs in it."""
        self._lost = self._lost or Missing("absent", "the store is closed")
        self._backend = None
        self._calls.put(None)
        self._thread.join(timeouts.STORE_CLOSE_S)

    def give_up(self, why: Missing) -> None:
        """Count as lost from now on, for this reason, and drop what is served here."""
        self._lost = self._lost or why
        self._backend = None

    def set(self, key: str, value: bytes) -> Missing | None:
        """Store the value; return the reason where that failed."""
        answer = self._call(lambda backend: backend.set(key, value))
        return answer if isinstance(answer, Missing) else None

    def add(self, key: str, amount: int) -> int | Missing:
        """Add to the counter and return its new value."""
        answer = self._call(lambda backend: backend.add(key, amount))
        return answer if isinstance(answer, Missing) else int(answer)

    def get(self, key: str) -> bytes | Missing:
        """Return the value, or Missing: "absent" while it is not set, another reason when the store is lost."""
        answer = self._call(lambda backend: backend.read(key))
        return Missing("absent", f"{key} is not set") if answer is None else answer

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the value as soon as it is set; Missing "timeout" at the deadline, at once when the store is lost."""
        for _ in polls(deadline):
            value = self.get(key)
            if not (isinstance(value, Missing) and value.missing == "absent"):
                return value
        return Missing("timeout", f"{key} did not come in time")

    def wait_document(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the document as soon as it is complete; Missing as for `wait`."""
        head = self.wait(key, deadline)
        return head if isinstance(head, Missing) else self._whole(key, head)

    def set_document(self, key: str, value: bytes) -> Missing | None:
        """Store a value of any size: in one piece, or in parts and last of all how many they are."""
        size = self._part_bytes(len(value))
        if len(value) < size:
            return self._set_acknowledged(key, _INLINE + value)
        starts = range(0, len(value), size)
        for number, start in enumerate(starts):
            failed = self._set_acknowledged(f"{key}/{number}", value[start : start + size])
            if failed is not None:
                return failed
        return self._set_acknowledged(key, str(len(starts)).encode())

    def set_documents(self, documents: Mapping[str, bytes]) -> Missing | None:
        """Store many documents, those that are in one piece in few requests."""
        whole = {key: value for key, value in documents.items() if len(value) < self._part_bytes(len(value))}
        pieces = ((key, _INLINE + value) for key, value in whole.items())
        while together := dict(islice(pieces, TOGETHER)):
            failed = self._call(partial(_set_many, values=together))
            if isinstance(failed, Missing):
                return failed
        for key, value in documents.items():
            failed = None if key in whole else self.set_document(key, value)
            if failed is not None:
                return failed
        return None

    def get_document(self, key: str) -> bytes | Missing:
        """Return what `set_document` stored under the key."""
        head = self.get(key)
        return head if isinstance(head, Missing) else self._whole(key, head)

    def get_documents(self, document_keys: Sequence[str], *, thorough: bool = True) -> dict[str, bytes]:
        """Return those of the documents that are there; not thorough: only where all that are asked for at once are."""
        found: dict[str, bytes] = {}
        for start in range(0, len(document_keys), TOGETHER):
            together = document_keys[start : start + TOGETHER]
            heads = self._call(partial(_read_many, document_keys=together, thorough=thorough))
            if isinstance(heads, Missing):
                break
            for key, head in heads.items():
                document = self._whole(key, head)
                if not isinstance(document, Missing):
                    found[key] = document
        return found

    def _whole(self, key: str, head: bytes) -> bytes | Missing:
        """Return the document whose first value this is."""
        if head.startswith(_INLINE):
            return head[len(_INLINE) :]
        if not head.isdigit() or len(head) > _MOST_DIGITS or int(head) > MOST_PARTS:
            return Missing("error", f"{key} is not a document of ours")
        parts = []
        for number in range(int(head)):
            part = self.get(f"{key}/{number}")
            if isinstance(part, Missing):
                return part
            parts.append(part)
        return b"".join(parts)

    def ask(self, question: Callable[[], bytes]) -> bytes | Missing:
        """Return what the backend answers to a question that is no call of a store, within the same deadline."""
        found: bytes | Missing = self._call(lambda _: question())
        return found

    def _part_bytes(self, _document_bytes: int) -> int:
        """Return how large the parts of a document of that size may be."""
        return VALUE_LIMIT_BYTES

    def _set_acknowledged(self, key: str, value: bytes) -> Missing | None:
        """Store the value and return once the backend has processed it."""
        return self.set(key, value)

    def _call(self, function: Callable[[Any], Any]) -> Any:
        if self._lost is not None:
            return self._lost
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls.put((lambda: function(self._backend), answer))
        result = _answered(answer)
        if isinstance(result, Exception):
            self._lost = Missing("error", first_line(result))
            raise result
        if isinstance(result, Missing):
            self._lost = result
        return result

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            function, answer = call
            try:
                answer.put(function())
            except (
                Exception
            ) as error:  # torch raises several types here; all but bugs mean that the store is gone
                bug = self._lost is None and is_own_bug(error)
                answer.put(error if bug else Missing("error", first_line(error)))


def _answered(answer: queue.SimpleQueue[Any]) -> Any:
    """Return the answer to a call. While this process stands still, no time of it passes."""
    began = awake_s()
    while (left_s := began + timeouts.STORE_CALL_S - awake_s()) > 0:
        with suppress(queue.Empty):
            return answer.get(timeout=left_s)
    return Missing("timeout", f"the store did not answer within {timeouts.STORE_CALL_S:.0f} s")


def _read_many(backend: Backend, document_keys: Sequence[str], thorough: bool) -> dict[str, bytes]:
    """Return the values that are set; not thorough, from a backend that can tell: none unless all are."""
    if isinstance(backend, BatchBackend):
        values = backend.read_all(document_keys)
        if values is not None:
            return dict(zip(document_keys, values, strict=True))
        if not thorough:
            return {}
    found = ((key, backend.read(key)) for key in document_keys)
    return {key: value for key, value in found if value is not None}


def _set_many(backend: Backend, values: Mapping[str, bytes]) -> None:
    if isinstance(backend, BatchBackend):
        backend.set_all(values)
        return
    for key, value in values.items():
        backend.set(key, value)


def first_line(error: Exception) -> str:
    """Return the first line of the error, with its type unless its own text says it all."""
    kind = "" if type(error) is OSError else f"{type(error).__name__}: "  # the text of a pipe's other end
    return f"{kind}{error}".splitlines()[0][:300]
