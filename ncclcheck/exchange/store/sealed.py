"""The store that a launcher serves, in a run with a key: every value in it carries an HMAC.

Any process that reaches such a store can write. What was written without the key, or for another key of the store,
or is older than what was read there before, counts as not written; a value that was read once is kept, whoever erases
it. Counters carry no HMAC: they only count the processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.trust.run_key import RunKey, framed, opened_message, sealed_message
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import NOT_TOLD, Missing

_NUMBER_BYTES = 8
_ORIGIN = "the launcher's store"


class SealedStore:
    """The store `inner`, whose values are sealed with the run's key.

    State: the run's nonce once it is known, how often each key was written, and the newest value that was read.
    """

    def __init__(self, inner: Store, trust: Trust, key: RunKey, prefix: str) -> None:
        self._inner, self._trust, self._key, self._prefix = inner, trust, key, prefix.encode()
        self._nonce = b""
        self._written: dict[str, int] = {}
        self._newest: dict[str, tuple[int, bytes]] = {}
        self.port = inner.port

    @property
    def lost(self) -> Missing | None:
        """Return why the store cannot be used any more; None while it can."""
        return self._inner.lost

    def close(self) -> None:
        """Give up the store."""
        self._inner.close()

    def get(self, key: str) -> bytes | Missing:
        """Return the value, or Missing: "absent" while no member has set it, another reason when the store is lost."""
        return self._opened(key, self._inner.get(key))

    def set(self, key: str, value: bytes) -> Missing | None:
        """Store the value; return the reason where that failed."""
        return self._inner.set(key, self._sealed(key, value))

    def add(self, key: str, amount: int) -> int | Missing:
        """Add to the counter and return its new value."""
        return self._inner.add(key, amount)

    def wait(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the value as soon as it is set; Missing "timeout" at the deadline, at once when the store is lost."""
        for _ in polls(deadline):
            value = self.get(key)
            if not isinstance(value, Missing) or self.lost is not None:
                return value
        return Missing("timeout", f"{key} did not come in time")

    def set_document(self, key: str, value: bytes) -> Missing | None:
        """Store a value of any size; return the reason where that failed."""
        return self._inner.set_document(key, self._sealed(key, value))

    def set_documents(self, documents: Mapping[str, bytes]) -> Missing | None:
        """Store many documents, in few requests."""
        return self._inner.set_documents({key: self._sealed(key, value) for key, value in documents.items()})

    def get_documents(self, document_keys: Sequence[str], *, thorough: bool = True) -> dict[str, bytes]:
        """Return those of the documents that members stored, as `get_document`."""
        found = self._inner.get_documents(document_keys, thorough=thorough)
        opened = {key: self._opened(key, found.get(key, NOT_TOLD)) for key in document_keys}
        return {key: value for key, value in opened.items() if not isinstance(value, Missing)}

    def get_document(self, key: str) -> bytes | Missing:
        """Return what a member stored with `set_document` under the key."""
        return self._opened(key, self._inner.get_document(key))

    def wait_document(self, key: str, deadline: Deadline) -> bytes | Missing:
        """Return the document as soon as it is complete; Missing as for `wait`."""
        for _ in polls(deadline):
            found = self._inner.wait_document(key, deadline)
            late = isinstance(found, Missing) and found.missing == "timeout"
            value = self._opened(key, Missing("absent", "late") if late else found)
            if not isinstance(value, Missing) or self.lost is not None:
                return value
        return Missing("timeout", f"{key} did not come in time")

    def _sealed(self, key: str, value: bytes) -> bytes:
        self._written[key] = self._written.get(key, 0) + 1
        sealed = sealed_message(self._key_of(key), self._written[key].to_bytes(_NUMBER_BYTES, "big") + value)
        if key == keys.SERVING:
            self._nonce = value
        return sealed

    def _opened(self, key: str, found: bytes | Missing) -> bytes | Missing:
        if isinstance(found, Missing) and self.lost is not None:
            return found
        if not isinstance(found, Missing):
            self._take(key, found)
        elif found.missing != "absent":
            self._trust.drop(_ORIGIN, "no-key")  # no document of ours
        newest = self._newest.get(key)
        return Missing("absent", f"{key} is not set") if newest is None else newest[1]

    def _take(self, key: str, found: bytes) -> None:
        try:
            message = opened_message(self._key_of(key), found)
        except DecodeError:
            self._trust.drop(_ORIGIN, "other-key")
            return
        number = int.from_bytes(message[:_NUMBER_BYTES], "big")
        if number >= self._newest.get(key, (0, b""))[0]:
            self._newest[key] = number, message[_NUMBER_BYTES:]
            if key == keys.SERVING:
                self._nonce = self._newest[key][1]

    def _key_of(self, key: str) -> bytes:
        nonce = b"" if key == keys.SERVING else self._nonce
        return self._key.derived("values of a store", framed(self._prefix, nonce, key.encode()))
