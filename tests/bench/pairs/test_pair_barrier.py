"""All ranks of a round begin together and stay until all have measured; one that never comes costs a deadline once."""

from __future__ import annotations

import threading
import time

import pytest
import torch.distributed as dist
from msgspec.structs import replace

from ncclcheck.bench.pairs import pair_barrier
from ncclcheck.bench.pairs.pair_barrier import PairBarrier
from ncclcheck.bench.pairs.pair_task import PairTask

TASK = PairTask(1, 0, 0, "127.0.0.1", 1, "p", "gloo", 1 << 20, barrier_ranks=3, round_prefix="r")


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_POLL_S", 0.0)
    monkeypatch.setattr(pair_barrier, "POLLS_PER_S", float("inf"))


def test_the_first_waits_for_the_last_in_each_direction() -> None:
    store = dist.HashStore()
    begun: list[str] = []

    def rank(number: int) -> None:
        barrier = PairBarrier(store, TASK, lambda: None)
        for direction in ("0", "1"):
            barrier.meet(direction)
            begun.append(f"{direction} {number}")

    early = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for thread in early:
        thread.start()
    time.sleep(0.2)
    assert begun == []
    rank(2)
    for thread in early:
        thread.join(20)
    assert len(begun) == 6


def test_who_never_comes_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_S", 0.1)
    signs: list[int] = []
    barrier = PairBarrier(dist.HashStore(), TASK, lambda: signs.append(1))
    barrier.meet("0")
    assert signs, "node 0 would take who waits for a pair that hangs"
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_S", 1e6)
    barrier.meet("1")


def test_without_a_barrier_nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_S", 0.1)
    signs: list[int] = []  # who waits gives one with each look
    PairBarrier(dist.HashStore(), replace(TASK, barrier_ranks=0), lambda: signs.append(1)).meet("0")
    assert not signs


def test_a_stage_is_complete_when_the_last_receiver_has_come() -> None:
    store, two_pairs = dist.HashStore(), replace(TASK, barrier_ranks=4)
    barriers = [PairBarrier(store, two_pairs, lambda: None) for _ in range(2)]
    complete = []
    for barrier in barriers:
        barrier.has_come("0/counted")
        complete.append(barriers[0].is_complete("0/counted"))
    assert complete == [False, True]
    barriers[0].has_come("1/counted")
    assert not barriers[0].is_complete("1/counted")


def test_who_never_comes_to_a_stage_keeps_the_others_for_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_S", 0.0)
    barrier = PairBarrier(dist.HashStore(), replace(TASK, barrier_ranks=4), lambda: None)
    barrier.has_come("0/counted")
    assert barrier.is_complete("0/counted")


def test_a_pair_without_a_barrier_stays_for_nobody() -> None:
    barrier = PairBarrier(dist.HashStore(), replace(TASK, barrier_ranks=0), lambda: None)
    barrier.has_come("0/counted")
    assert barrier.is_complete("0/counted")


def test_the_store_is_asked_at_most_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_POLL_S", 1e6)
    store, two_pairs = dist.HashStore(), replace(TASK, barrier_ranks=4)
    first, second = (PairBarrier(store, two_pairs, lambda: None) for _ in range(2))
    first.has_come("0/counted")
    assert not first.is_complete("0/counted")
    second.has_come("0/counted")
    assert not first.is_complete("0/counted"), "it was asked a moment ago"
    assert second.is_complete("0/counted")
