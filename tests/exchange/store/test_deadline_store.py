"""What holds for a store over any backend: a call that fails or blocks loses it, and then nothing waits."""

from __future__ import annotations

import threading
import time

import pytest

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.model.fact import Missing
from tests.exchange.store.gone_backend import GoneBackend


class BlockingBackend(MemoryBackend):
    """Blocks in `read` until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def read(self, key: str) -> bytes | None:
        self.released.wait(30)
        return super().read(key)


def test_a_call_that_fails_loses_the_store_with_the_reason() -> None:
    store = DeadlineStore(GoneBackend(), 29500)
    found = store.get("a")
    assert isinstance(found, Missing)
    assert found == Missing("error", "RuntimeError: check a: Connection reset by peer")
    assert store.lost == found
    assert store.set("a", b"1") == found
    assert store.wait("a", Deadline(30)) == found


class WrongBackend(MemoryBackend):
    """Cannot be asked as it is: what torch 2.2 did before `store.versions` knew it."""

    def read(self, key: str) -> bytes | None:
        raise AttributeError(f"no attribute 'check' ({key})")


def test_a_bug_in_a_call_is_raised_to_the_caller_and_loses_the_store() -> None:
    store = DeadlineStore(WrongBackend(), 29500)
    with pytest.raises(AttributeError, match="no attribute 'check'"):
        store.get("a")
    assert store.lost == Missing("error", "AttributeError: no attribute 'check' (a)")
    assert store.get("a") == store.lost


def test_a_call_that_blocks_is_abandoned_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "STORE_CALL_S", 0.2)
    backend = BlockingBackend()
    store, began = DeadlineStore(backend, 29500), time.monotonic()
    found = store.get("a")
    assert time.monotonic() - began < 2
    assert isinstance(found, Missing)
    assert found.missing == "timeout"
    assert store.get("b") == found
    backend.released.set()


def test_a_closed_store_answers_nothing_more() -> None:
    store = DeadlineStore(MemoryBackend(), 29500)
    assert store.set("a", b"1") is None
    store.close()
    assert store.get("a") == Missing("absent", "the store is closed")
    assert store.lost is not None


def test_a_key_under_which_no_document_was_stored_is_refused() -> None:
    store = DeadlineStore(MemoryBackend(), 29500)
    for count in (b"many", b"-1", b"1000000000"):
        store.set("report", count)
        found = store.get_document("report")
        assert isinstance(found, Missing)
        assert found.missing == "error"
