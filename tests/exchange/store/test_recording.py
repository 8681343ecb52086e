"""What a process read and wrote can be compared with what another one wrote and read."""

from __future__ import annotations

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.recording import RecordingStore, digest_of
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
