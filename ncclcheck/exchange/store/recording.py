"""A store that remembers digests of the documents that passed through it, to be compared with another process's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.fact import Missing


def digest_of(document: bytes) -> str:
    """Return the digest by which a document is compared."""
    return hashlib.sha256(document).hexdigest()


def judged_messages(digests: Mapping[str, str]) -> dict[str, str]:
    """Return those of the digests that belong to facts and answers, on which a verdict rests."""
    return {key: digest for key, digest in digests.items() if key.startswith(keys.JUDGED)}


class RecordingStore:
    """The store `inner`. State: the digest of each document as it was last read, and last written."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.port = inner.port
        self.read: dict[str, str] = {}
        self.written: dict[str, str] = {}

    @property
    def lost(self) -> Missing | None:
        """Return why the store cannot be used any more; None while it can."""
        return self._inner.lost

    def close(self) -> None:
        """Give up the store, and the port of one that is served here."""
        self._inner.close()

    def get(self, key: str) -> bytes | Missing:
        """Return the value, or Missing: "absent" while it is not set, another reason when the store is lost."""
        return self._inner.get(key)

    def set(self, key: str, value: bytes) -> Missing | None:
        """Store the value; return the reason where that failed."""
        return self._inner.set(key, value)

    def add(self, key: str, amount: int) -> int | Missing:
        """Add to the counter and return its new value."""
        return self._inner.add(key, amount)

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the value as soon as it is set; Missing "timeout" at the deadline, at once when the store is lost."""
        return self._inner.wait(key, deadline)

    def set_document(self, key: str, value: bytes) -> Missing | None:
        """Store a value of any size; return the reason where that failed."""
        self.written[key] = digest_of(value)
        return self._inner.set_document(key, value)

    def set_documents(self, documents: Mapping[str, bytes]) -> Missing | None:
        """Store many documents."""
        for key, value in documents.items():
            self.written[key] = digest_of(value)
        return self._inner.set_documents(documents)

    def get_documents(self, document_keys: Sequence[str], *, thorough: bool = True) -> dict[str, bytes]:
        """Return those of the documents that are there."""
        found = self._inner.get_documents(document_keys, thorough=thorough)
        for key, document in found.items():
            self._noted(key, document)
        return found

    def get_document(self, key: str) -> bytes | Missing:
        """Return what `set_document` stored under the key."""
        return self._noted(key, self._inner.get_document(key))

    def wait_document(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the document as soon as it is complete; Missing as for `wait`."""
        return self._noted(key, self._inner.wait_document(key, deadline))

    def _noted(self, key: str, document: bytes | Missing) -> bytes | Missing:
        if not isinstance(document, Missing):
            self.read[key] = digest_of(document)
        return document
