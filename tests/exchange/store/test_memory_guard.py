"""A store that somebody fills is given up before memory is gone; one of usual size is not."""

from __future__ import annotations

import time

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import memory_guard
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.memory_guard import guard_memory, watch
from ncclcheck.exchange.store.tcp import join, serve
from ncclcheck.model.fact import Missing
from tests.waiting import until


def test_a_store_that_grows_without_end_is_given_up() -> None:
    store = serve(0, "run/", Deadline(30))
    assert not isinstance(store, Missing)
    guard_memory(store, 2)
    stranger = join("127.0.0.1", store.port, "stranger/", Deadline(10))
    assert not isinstance(stranger, Missing)
    until = time.monotonic() + 60
    number = 0
    while store.lost is None and time.monotonic() < until:
        stranger.set(str(number), bytes(4 << 20))
        number += 1
    assert store.lost is not None
    assert "somebody fills it" in store.lost.detail
    stranger.close()
    store.close()


def test_a_store_of_usual_size_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int | None] = []
    resident_bytes = memory_guard._resident_bytes

    def counted() -> int | None:
        looks.append(resident_bytes())
        return looks[-1]

    monkeypatch.setattr(memory_guard, "_resident_bytes", counted)
    store = DeadlineStore(MemoryBackend(), 0)
    guard_memory(store, 2)
    store.set("a", bytes(1 << 20))
    until(lambda: len(looks) > 3, "three looks at the memory")
    assert store.lost is None
    assert store.get("a") == bytes(1 << 20)
    store.close()
    watch(store, 0)  # it ends at once
