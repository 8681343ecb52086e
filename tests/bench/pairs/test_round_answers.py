"""The answers to one order over a store: read together, waited for no longer than the others took, never believed."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.pairs import round_answers
from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsRound
from ncclcheck.bench.pairs.round_answers import Answers, RoundContext, gather_round, gather_start
from ncclcheck.bench.pairs.round_limit import Finished
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.codec import encode
from ncclcheck.timeouts import ROUND_LEAST_S

SOUND = PairAnswer(SCHEMA, TOOL_VERSION, received_gbit_s=10.0, seconds=0.1, transfer_s=0.02)
ORDER = PairsRound(SCHEMA, TOOL_VERSION, 1, ((0, 1), (2, 3)))


class Gathered(Struct, frozen=True):
    """The answers, those that finished, and how long it took."""

    answers: Answers
    finished: tuple[Finished, ...]
    seconds: float
    is_over: bool


def gathered(told: dict[int, bytes], order: PairsRound = ORDER) -> Gathered:
    """What node 0 reads where these answers stand in the store, of four nodes."""
    store = within_process(MemoryBackend(), 0)
    for ticket, data in told.items():
        store.set_document(keys.pairs_answer(order.number, ticket), data)
    before: list[Finished] = []
    began = time.monotonic()
    answers = gather_round(RoundContext(store, Deadline(60.0), lambda _: None), order, range(4), before)
    is_over = store.get(keys.pairs_over(order.number)) == b"1"
    return Gathered(answers, tuple(before), time.monotonic() - began, is_over)


def test_all_answers_are_read_at_once_and_kept_for_the_next_round() -> None:
    found = gathered(dict.fromkeys(range(4), encode(SOUND)))
    assert found.answers == dict.fromkeys(range(4), SOUND)
    assert [end.transfer_s for end in found.finished] == [0.02] * 4
    assert not found.is_over


def test_a_pair_that_hangs_is_given_up_and_told_so() -> None:
    found = gathered({0: encode(SOUND), 1: encode(SOUND), 2: encode(SOUND)})
    assert set(found.answers) == {0, 1, 2}
    assert found.is_over
    assert found.seconds < 20


def test_a_pair_that_is_late_and_goes_on_is_slow_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_answers, "PAIR_MOVED_S", 0.05)
    backend = MemoryBackend()
    store = within_process(backend, 0)
    for ticket in (0, 1, 2):
        store.set_document(keys.pairs_answer(1, ticket), encode(SOUND))

    def late() -> None:
        own = within_process(backend, 1)
        for number in range(20):  # twice as long as those have that stand still
            own.set_document(keys.pairs_moved(1, 3, number), b"1")
            time.sleep(0.25)
        own.set_document(keys.pairs_answer(1, 3), encode(SOUND))

    thread = threading.Thread(target=late)
    thread.start()
    answers = gather_round(RoundContext(store, Deadline(60.0), lambda _: None), ORDER, range(4), [])
    thread.join()
    assert set(answers) == {0, 1, 2, 3}


def test_a_pair_that_goes_on_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_answers, "PAIR_MOVED_S", 0.05)
    monkeypatch.setattr(round_answers, "ROUND_MOVING_S", 1.0)
    store = within_process(MemoryBackend(), 0)
    for ticket in (0, 1, 2):
        store.set_document(keys.pairs_answer(1, ticket), encode(SOUND))
    for number in range(1000):
        store.set_document(keys.pairs_moved(1, 3, number), b"1")
    began = time.monotonic()
    assert set(gather_round(RoundContext(store, Deadline(60.0), lambda _: None), ORDER, range(4), [])) == {
        0,
        1,
        2,
    }
    assert time.monotonic() - began < 20


def test_malformed_answer_counts_as_node_failure() -> None:
    found = gathered({**dict.fromkeys(range(3), encode(SOUND)), 3: b"{}"})
    assert (found.answers[3].outcome, found.answers[3].own) == ("died", True)
    assert "its answer was refused" in found.answers[3].detail


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"deviation": 1e200}, "a deviation"),
        ({"deviation": -0.1}, "a deviation"),
        ({"received_gbit_s": 0.0}, "a rate"),
        ({"received_gbit_s": -1.0}, "a rate"),
        ({"received_gbit_s": 1e300}, "a rate"),
        ({"rails_gbit_s": (10.0, 1e300)}, "a rate"),
        ({"rails_gbit_s": (10.0,) * 65}, "rails"),
        ({"seconds": -1.0}, "a time"),
        ({"transfer_s": 1e300}, "a time"),
    ],
)
def test_figures_that_no_network_reaches_are_refused(figures: dict[str, Any], words: str) -> None:
    hostile = encode(replace(SOUND, **figures))
    found = gathered({**dict.fromkeys(range(3), encode(SOUND)), 3: hostile})
    refused = found.answers[3]
    assert (refused.outcome, refused.own, refused.received_gbit_s) == ("died", True, None)
    assert f"its answer was refused: {words}" in refused.detail
    assert len(found.finished) == 3


def test_a_pair_took_no_longer_than_its_round() -> None:
    told = encode(replace(SOUND, seconds=80000.0, transfer_s=70000.0))
    found = gathered(dict.fromkeys(range(4), told))
    assert all(end.transfer_s <= end.seconds <= end.at_s + ROUND_LEAST_S for end in found.finished)


def test_a_node_that_imports_torch_long_after_the_others_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(round_answers, "PAIRS_START_SILENT_S", 0.5)
    monkeypatch.setattr(round_answers, "PAIRS_START_TOLD_S", 0.2)
    backend = MemoryBackend()
    store, said = within_process(backend, 0), list[str]()

    def late() -> None:
        own = within_process(backend, 1)
        for number in range(10):  # 2 s, four times what a node without a sign has
            time.sleep(0.2)
            own.set_document(keys.pairs_start(2, number), b"1")
        own.set_document(keys.pairs_answer(0, 2), encode(SOUND))

    for ticket in (0, 1):
        store.set_document(keys.pairs_answer(0, ticket), encode(SOUND))
    thread = threading.Thread(target=late)
    thread.start()
    answers = gather_start(RoundContext(store, Deadline(60.0), said.append), range(3))
    thread.join()
    assert set(answers) == {0, 1, 2}
    assert said == ["waiting for 1 of 3 nodes to import torch"]


def test_a_node_that_gives_no_sign_while_the_others_start_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(round_answers, "PAIRS_START_SILENT_S", 0.5)
    store = within_process(MemoryBackend(), 0)
    store.set_document(keys.pairs_answer(0, 0), encode(SOUND))
    store.set_document(keys.pairs_start(1, 0), b"1")
    began = time.monotonic()
    assert set(gather_start(RoundContext(store, Deadline(60.0), lambda _: None), range(2))) == {0}
    assert time.monotonic() - began < 20
