"""What a run needs of the store that its processes share, and what a medium has to offer to become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.model.fact import Missing

TOGETHER = 64  # keys of one request
VALUE_LIMIT_BYTES = (
    4 * 1024 * 1024
)  # of one value: as base64 in JSON, a third longer, it still fits a line of a pipe


class Store(Protocol):
    """Values, counters and documents by key (`store.keys`), shared by all processes of a run.

    No call raises and each returns within a few seconds: what cannot be had is Missing. After a call that failed the
    store counts as lost, for good. Open one with `store.opening`.
    """

    port: int  # the TCP port at which the ranks of a benchmark meet

    @property
    def lost(self) -> Missing | None:
        """Return why the store cannot be used any more; None while it can."""
        ...

    def close(self) -> None:
        """Give up the store, and the port of one that is served here."""
        ...

    def get(self, key: str) -> bytes | Missing:
        """Return the value, or Missing: "absent" while it is not set, another reason when the store is lost."""
        ...

    def set(self, key: str, value: bytes) -> Missing | None:
        """Store the value; return the reason where that failed."""
        ...

    def add(self, key: str, amount: int) -> int | Missing:
        """Add to the counter and return its new value."""
        ...

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the value as soon as it is set; Missing "timeout" at the deadline, at once when the store is lost."""
        ...

    def set_document(self, key: str, value: bytes) -> Missing | None:
        """Store a value of any size; return the reason where that failed."""
        ...

    def get_document(self, key: str) -> bytes | Missing:
        """Return what `set_document` stored under the key."""
        ...

    def set_documents(self, documents: Mapping[str, bytes]) -> Missing | None:
        """Store many documents, as `set_document`, in few requests."""
        ...

    def get_documents(self, document_keys: Sequence[str], *, thorough: bool = True) -> dict[str, bytes]:
        """Return those of the documents that are there, in few requests.

        Not thorough: of keys that are asked for together, none unless all are there. Ask again, thoroughly in the end.
        """
        ...

    def wait_document(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the document as soon as it is complete; Missing as for `wait`."""
        ...


class Backend(Protocol):
    """A medium that holds the values. A method that fails raises, and may block: `deadline_store` bounds each call."""

    def set(self, key: str, value: bytes) -> None:
        """Store the value."""
        ...

    def add(self, key: str, amount: int) -> int:
        """Add to the counter and return its new value."""
        ...

    def read(self, key: str) -> bytes | None:
        """Return the value, or the counter as a number; None while it is not set."""
        ...


@runtime_checkable
class BatchBackend(Protocol):
    """A backend that does many things in one request."""

    def set_all(self, values: Mapping[str, bytes]) -> None:
        """Store all these values."""
        ...

    def read_all(self, value_keys: Sequence[str]) -> list[bytes] | None:
        """Return the values; None unless all are set, or where that is not known."""
        ...
