"""A store in memory: values, counters, and its end."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.store.memory import MemoryBackend


def test_values_and_counters() -> None:
    memory = MemoryBackend()
    assert memory.read("a") is None
    memory.set("a", b"1")
    memory.set("a", b"22")
    assert memory.read("a") == b"22"
    assert [memory.add("n", 1), memory.add("n", 0), memory.add("n", 2)] == [1, 1, 3]
    assert memory.read("n") == b"3"
    assert memory.look() == b"{}"


def test_it_takes_so_much_and_what_is_replaced_makes_room() -> None:
    memory = MemoryBackend(limit_bytes=10)
    memory.set("a", bytes(10))
    with pytest.raises(OSError, match="No space"):
        memory.set("b", b"x")
    memory.set("a", bytes(4))
    memory.set("b", bytes(6))
