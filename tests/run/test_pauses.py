"""Each node tells node 0 where it stood still, and only that."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.run import pauses
from ncclcheck.run.pauses import PauseNotes, reported_pauses


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [7.0]  # before the run
    monkeypatch.setattr(pauses, "still_s", lambda: seconds[0])
    return seconds


def test_a_pause_is_told_with_the_step_that_it_was_in(still: list[float]) -> None:
    store = within_process(MemoryBackend(), 0)
    notes = PauseNotes(store, 2)
    notes.begin("reach")
    still[0] += 12.0
    notes.tell()
    still[0] += 4.0  # it had answered, and others still called it, or were at the next step
    notes.begin("measure")
    notes.tell()
    assert reported_pauses(store, {1: "node01", 2: "node02"}) == {"node02": {"reach": 16.0, "measure": 4.0}}


def test_short_pauses_are_not_told(still: list[float]) -> None:
    store = within_process(MemoryBackend(), 0)
    notes = PauseNotes(store, 2)
    for step in ("reach", "measure", "measure"):
        notes.begin(step)
        still[0] += 2.0
        notes.tell()
    assert reported_pauses(store, {2: "node02"}) == {}


@pytest.mark.parametrize("seconds", [b"{}", b'{"reach":-1}', b'{"reach":1e300}'])
def test_what_cannot_be_is_not_taken(seconds: bytes) -> None:
    store = within_process(MemoryBackend(), 0)
    message = b'{"schema_version":"1","tool_version":"1","seconds":' + seconds + b"}"
    store.set_document(keys.stood_still(2), message)
    assert not reported_pauses(store, {2: "node02"}).get("node02")
