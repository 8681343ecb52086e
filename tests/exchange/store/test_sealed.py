"""Values of a launcher's store with HMACs: what strangers write there counts as not written."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.exchange.store.sealed import SealedStore
from ncclcheck.exchange.trust.run_key import new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.fact import Missing

KEY = new_key("a test")


class Run:
    """A store that everybody can write into, and two members with the key."""

    def __init__(self, nonce: bytes = b"nonce") -> None:
        self.stranger: Store = within_process(MemoryBackend(), 7)
        self.trust = Trust(KEY)
        self.first, self.second = (SealedStore(self.stranger, self.trust, KEY, "job/") for _ in range(2))
        self.first.set(keys.SERVING, nonce)
        assert self.second.wait(keys.SERVING, Deadline(1)) == nonce


@pytest.fixture
def run() -> Run:
    return Run()


def test_members_read_what_members_write(run: Run) -> None:
    assert run.first.port == 7
    run.first.set("a", b"1")
    run.first.set_document("b", b"2" * 5000)
    assert run.second.get("a") == b"1"
    assert run.second.wait_document("b", Deadline(1)) == b"2" * 5000
    run.first.set("a", b"3")
    assert run.second.get("a") == b"3"
    assert (run.first.add("n", 1), run.second.add("n", 2)) == (1, 3)
    assert run.trust.authentication().foreign == ()


def test_forged_moved_replayed_and_erased_values_change_nothing(run: Run) -> None:
    run.first.set("a", b"old")
    old = run.stranger.get("a")
    assert isinstance(old, bytes)
    run.first.set("a", b"new")
    assert run.second.get("a") == b"new"
    for forged in (b"forged", old, b""):
        run.stranger.set("a", forged)
        assert run.second.get("a") == b"new"
    run.stranger.set("c", old)
    assert run.second.get("c") == Missing("absent", "c is not set")
    assert run.second.wait("c", Deadline(0.05)) == Missing("timeout", "c did not come in time")
    run.stranger.set("d", b"no number")
    assert isinstance(run.second.get_document("d"), Missing)
    assert run.trust.authentication().foreign


def test_values_of_another_run_with_the_same_key_are_foreign(run: Run) -> None:
    run.first.set("a", b"1")
    value = run.stranger.get("a")
    assert isinstance(value, bytes)
    later = Run(b"another nonce")
    later.stranger.set("a", value)
    assert isinstance(later.second.get("a"), Missing)
