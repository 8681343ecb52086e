"""A store that remembers digests of what passed through it: to compare them with another process's, and with itself.

Keys that only this process may write must not change after it wrote them, nor keys that it has read. Where that
is not so, another program writes into the store, and what is missing in it says nothing about any node.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import STORE_LOOK_S

_MOST_LOOKED_AT = 24  # of the keys that this process wrote, the first and the last ones
_SMALL_BYTES = 4096  # such a value may be read again and again
_MOST_CHANGES = 16


def digest_of(document: bytes) -> str:
    """Return the digest by which a document is compared."""
    return hashlib.sha256(document).hexdigest()


def judged_messages(digests: Mapping[str, str]) -> dict[str, str]:
    """Return those of the digests that belong to facts and answers, on which a verdict rests."""
    return {key: digest for key, digest in digests.items() if key.startswith(keys.JUDGED)}


class _WrittenKey(Struct, frozen=True):
    """A value that this process wrote."""

    digest: str
    size_bytes: int
    is_document: bool


class RecordingStore:
    """The store `inner`. State: the digest of each document as last read and written, and what others have changed."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.port = inner.port
        self.read: dict[str, str] = {}
        self.written: dict[str, str] = {}
        self._own: dict[str, _WrittenKey] = {}  # what this process wrote, once
        self._rewritten: set[str] = set()
        self._seen: set[str] = set()
        self._changes: dict[str, str] = {}  # key -> what became of it
        self._next_look = time.monotonic() + STORE_LOOK_S

    @property
    def inner(self) -> Store:
        """Return the store itself."""
        return self._inner

    @property
    def lost(self) -> Missing | None:
        """Return why the store cannot be used any more; None while it can."""
        return self._inner.lost

    def close(self) -> None:
        """Give up the store, and the port of one that is served here."""
        self._inner.close()

    def changed(self) -> dict[str, str]:
        """Look at what this process wrote; return the keys that another process changed so far, and how.

        Of a store that is lost only what was noticed before.
        """
        keys_of_own = list(self._own)
        for key in dict.fromkeys((*keys_of_own[:_MOST_LOOKED_AT], *keys_of_own[-_MOST_LOOKED_AT:])):
            self._look_at(key)
        return dict(self._changes)

    def get(self, key: str) -> bytes | Missing:
        """Return the value, or Missing: "absent" while it is not set, another reason when the store is lost."""
        self._look()
        return self._seen_or_gone(key, self._inner.get(key))

    def set(self, key: str, value: bytes) -> Missing | None:
        """Store the value; return the reason where that failed."""
        self._look()
        if key == keys.SERVING:  # sealed values from before this run had its nonce do not open any more
            self._own.clear()
        self._begins(key)
        return self._wrote(key, value, self._inner.set(key, value), is_document=False)

    def add(self, key: str, amount: int) -> int | Missing:
        """Add to the counter and return its new value."""
        return self._inner.add(key, amount)

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the value as soon as it is set; Missing "timeout" at the deadline, at once when the store is lost."""
        while True:
            value = self._inner.wait(key, deadline.within(STORE_LOOK_S))
            if not self._goes_on(value, deadline):
                return value

    def set_document(self, key: str, value: bytes) -> Missing | None:
        """Store a value of any size; return the reason where that failed."""
        self._look()
        self.written[key] = digest_of(value)
        self._begins(key)
        return self._wrote(key, value, self._inner.set_document(key, value), is_document=True)

    def set_documents(self, documents: Mapping[str, bytes]) -> Missing | None:
        """Store many documents."""
        for key, value in documents.items():
            self.written[key] = digest_of(value)
            self._begins(key)
        failed = self._inner.set_documents(documents)
        for key, value in documents.items():
            self._wrote(key, value, failed, is_document=True)
        return failed

    def get_documents(self, document_keys: Sequence[str], *, thorough: bool = True) -> dict[str, bytes]:
        """Return those of the documents that are there."""
        self._look()
        found = self._inner.get_documents(document_keys, thorough=thorough)
        for key, document in found.items():
            self._noted(key, document)
        return found

    def get_document(self, key: str) -> bytes | Missing:
        """Return what `set_document` stored under the key."""
        self._look()
        return self._noted(key, self._seen_or_gone(key, self._inner.get_document(key)))

    def wait_document(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the document as soon as it is complete; Missing as for `wait`."""
        while True:
            document = self._inner.wait_document(key, deadline.within(STORE_LOOK_S))
            if not self._goes_on(document, deadline):
                return self._noted(key, document)

    def _goes_on(self, value: bytes | Missing, deadline: Deadline) -> bool:
        """Return whether the wait for a key is not over yet; look meanwhile at what this process wrote."""
        self._look()
        is_late = isinstance(value, Missing) and value.missing == "timeout"
        return is_late and not deadline.passed and self.lost is None

    def _noted(self, key: str, document: bytes | Missing) -> bytes | Missing:
        if not isinstance(document, Missing):
            self.read[key] = digest_of(document)
        return document

    def _begins(self, key: str) -> None:
        """Note, before a key is written again, that its value is no longer the first one."""
        if key in self._own:
            self._rewritten.add(key)

    def _wrote(self, key: str, value: bytes, failed: Missing | None, *, is_document: bool) -> Missing | None:
        if failed is None and key not in self._own:
            self._own[key] = _WrittenKey(digest_of(value), len(value), is_document)
        return failed

    def _seen_or_gone(self, key: str, value: bytes | Missing) -> bytes | Missing:
        if not isinstance(value, Missing):
            self._seen.add(key)
        elif value.missing == "absent" and key in self._seen and self.lost is None:
            self._change(key, "was there, and is gone")
        return value

    def _look(self) -> None:
        """Look now and then whether the first small value that this process wrote is still there."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + STORE_LOOK_S
        first = next((key for key, written in list(self._own.items()) if written.size_bytes <= _SMALL_BYTES
                      and key not in self._rewritten), None)  # fmt: skip
        if first is not None:
            self._look_at(first)

    def _look_at(self, key: str) -> None:
        written = self._own[key]
        value = self._inner.get_document(key) if written.is_document else self._inner.get(key)
        if self.lost is not None or key in self._rewritten:  # perhaps another thread writes it right now
            return
        if isinstance(value, Missing):
            self._change(key, "is gone" if value.missing == "absent" else "holds something else")
        elif digest_of(value) != written.digest:
            self._change(key, "holds something else")

    def _change(self, key: str, what: str) -> None:
        if len(self._changes) < _MOST_CHANGES:
            self._changes.setdefault(key, what)
