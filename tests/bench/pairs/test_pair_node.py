"""A node's side of the rounds: signs that it lives while torch is imported, and its own words where that fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ncclcheck.bench.pairs import pair_node
from ncclcheck.bench.pairs.pair_node import PairPlace, run_pairs
from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsOrder, PairsRound
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing

LATE = Missing("timeout", "torch was not imported within 1 s")


class _Scripted:
    """What imports torch: these outcomes of one wait after the other, the last one again and again."""

    def __init__(self, waits: Sequence[Missing | None]) -> None:
        self._waits = list(waits)

    def wait_until_ready(self, _seconds: float) -> Missing | None:
        return self._waits.pop(0) if len(self._waits) > 1 else self._waits[0]

    def stop(self) -> None:
        pass


def started(monkeypatch: pytest.MonkeyPatch, waits: Sequence[Missing | None]) -> tuple[PairAnswer, Store]:
    """Return what a node answers to the order to start, and the store with its signs."""
    monkeypatch.setattr(pair_node, "PairProcess", lambda *_args, **_named: _Scripted(waits))
    store = within_process(MemoryBackend(), 0)
    store.set_document(keys.pairs_round(0), encode(PairsRound(SCHEMA, TOOL_VERSION, 0)))
    store.set_document(keys.pairs_round(1), encode(PairsRound(SCHEMA, TOOL_VERSION, 1)))
    place = PairPlace(store, 3, "127.0.0.1", "", Deadline(30.0))
    assert run_pairs(place, PairsOrder("gloo", 1 << 20, "0" * 16, {})) is None
    data = store.get_document(keys.pairs_answer(0, 3))
    assert isinstance(data, bytes)
    return read_message(data, PairAnswer, SMALL_LIMIT_BYTES), store


def test_a_node_gives_signs_until_torch_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, store = started(monkeypatch, [LATE, LATE, None])
    assert answer.outcome == "ok"
    signs = [isinstance(store.get_document(keys.pairs_start(3, number)), bytes) for number in range(3)]
    assert signs == [True, True, False]


def test_a_node_that_cannot_import_torch_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, _ = started(monkeypatch, [LATE, Missing("error", "No module named torch")])
    assert (answer.outcome, answer.detail, answer.own) == ("died", "No module named torch", True)


def test_a_node_gives_up_by_itself_and_names_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_node, "PAIRS_READY_S", 0.01)
    answer, _ = started(monkeypatch, [LATE])
    assert (answer.outcome, answer.own) == ("died", True)
    assert "torch was not imported within" in answer.detail
