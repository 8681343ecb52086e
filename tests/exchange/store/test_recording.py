"""What a process read and wrote can be compared with what another one wrote and read."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.recording import RecordingStore, digest_of
from ncclcheck.exchange.store.sealed import SealedStore
from ncclcheck.exchange.trust.run_key import new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.fact import Missing


def test_the_last_reading_and_the_last_writing_are_remembered() -> None:
    inner = DeadlineStore(MemoryBackend(), 7)
    store = RecordingStore(inner)
    assert store.port == 7
    assert isinstance(store.get_document("facts/1"), Missing)
    inner.set_document("facts/1", b"mine")
    assert store.get_document("facts/1") == b"mine"
    inner.set_document("facts/1", b"forged")
    assert store.wait_document("facts/1", Deadline(1)) == b"forged"
    assert store.read == {"facts/1": digest_of(b"forged")}
    store.set_document("answer/0/1", b"a")
    store.set_document("answer/0/1", b"b")
    assert store.written == {"answer/0/1": digest_of(b"b")}


def test_everything_else_is_the_store_s_own() -> None:
    store = RecordingStore(DeadlineStore(MemoryBackend(), 7))
    assert store.add("n", 2) == 2
    assert store.set("k", b"v") is None
    assert (store.get("k"), store.wait("k", Deadline(1)), store.lost) == (b"v", b"v", None)
    store.close()
    assert store.lost is not None


class _Erasable(MemoryBackend):
    """A store in which a stranger erases keys."""

    def erase(self, key: str) -> None:
        """Erase a value."""
        self._values.pop(key, None)


def _erasable() -> tuple[_Erasable, RecordingStore]:
    backend = _Erasable()
    return backend, RecordingStore(DeadlineStore(backend, 7))


def test_what_stays_as_it_was_written_is_no_change() -> None:
    _, store = _erasable()
    store.set("serving", b"nonce")
    store.set_documents({"order/0/1": b"a", "order/0/2": b"b"})
    for number in range(3):
        store.set_document("bench/state/1", str(number).encode())  # it is written again and again
    assert store.changed() == {}


def test_erased_and_overwritten_keys_are_noticed() -> None:
    backend, store = _erasable()
    store.set("serving", b"nonce")
    store.set_document("step/0", b"order")
    store.set_document("step/1", b"order")
    backend.erase("serving")
    backend.set("step/0", b"no document of ours")
    backend.set("step/1", b"=another order")
    assert store.changed() == {
        "serving": "is gone",
        "step/0": "holds something else",
        "step/1": "holds something else",
    }


def test_what_a_run_with_a_key_sealed_in_a_launchers_store_is_no_change() -> None:
    key = new_key("--key-file")
    store = RecordingStore(SealedStore(DeadlineStore(MemoryBackend(), 7), Trust(key), key, "job"))
    store.set("build", b"0.1.0")  # before the run has its nonce
    store.set("serving", b"n" * 16)
    store.set_document("step/0", b"order")
    assert store.changed() == {}


def test_a_key_that_was_read_and_is_gone_was_erased() -> None:
    backend, store = _erasable()
    assert isinstance(store.get("bench/state/2"), Missing)
    assert store.changed() == {}, "it has not come yet"
    backend.set("bench/state/2", b"x")
    store.get("bench/state/2")
    backend.erase("bench/state/2")
    store.get("bench/state/2")
    backend.set("bench/state/2", b"y")
    assert store.changed() == {"bench/state/2": "was there, and is gone"}


def test_what_is_erased_while_this_process_waits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncclcheck.exchange.store.recording.STORE_LOOK_S", 0.01)
    backend, store = _erasable()
    store.set("hello/2", b"x")
    backend.erase("hello/2")
    assert isinstance(store.wait_document("step/0", Deadline(0.1)), Missing)
    backend.set("hello/2", b"x")
    assert store.changed() == {"hello/2": "is gone"}


def test_a_lost_store_tells_of_no_change() -> None:
    _, store = _erasable()
    store.set("serving", b"nonce")
    store.close()
    assert store.changed() == {}
