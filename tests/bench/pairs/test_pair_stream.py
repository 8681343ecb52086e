"""Which parts a receiver asks for, and how wrong bytes are found; whole streams run in test_pair_process."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from ncclcheck.bench.pairs import pair_barrier, pair_stream
from ncclcheck.bench.pairs.pair_barrier import PairBarrier
from ncclcheck.bench.pairs.pair_stream import (
    COUNTED,
    LOAD,
    MOST_COUNTED,
    OVER,
    WHOLE,
    End,
    alone,
    pattern,
    together,
    wrong_bytes,
)
from ncclcheck.bench.pairs.pair_task import PairTask

TWO_PAIRS = PairTask(1, 0, 0, "127.0.0.1", 1, "p", "gloo", 1 << 20, barrier_ranks=4, round_prefix="r")
CPU = torch.device("cpu")


def barrier(store: dist.HashStore) -> PairBarrier:
    return PairBarrier(store, TWO_PAIRS, lambda: None)


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_barrier, "PAIR_BARRIER_POLL_S", 0.0)
    monkeypatch.setattr(pair_barrier, "POLLS_PER_S", float("inf"))


def test_alone_a_first_part_is_not_counted() -> None:
    assert list(alone(3).kinds) == [WHOLE, COUNTED, COUNTED, COUNTED, OVER]


def test_together_nothing_is_counted_before_all_send_nor_ended_before_all_have_counted() -> None:
    store = dist.HashStore()
    kinds = together(barrier(store), "0/0", 2, 1 << 20).kinds
    assert [next(kinds) for _ in range(4)] == [LOAD] * 4, "the other pair does not send yet"
    barrier(store).has_come("0/0/sends")
    assert [next(kinds) for _ in range(4)] == [COUNTED] * 4, "the other one still counts"
    barrier(store).has_come("0/0/counted")
    assert list(kinds) == [OVER]


def test_who_is_fast_counts_on_while_the_others_do_and_then_is_load() -> None:
    store = dist.HashStore()
    barrier(store).has_come("0/0/sends")
    wanted = together(barrier(store), "0/0", 2, 1 << 20)
    asked = [next(wanted.kinds) for _ in range(MOST_COUNTED + 4)]
    assert asked == [LOAD, LOAD, *[COUNTED] * MOST_COUNTED, LOAD, LOAD]
    assert wanted.parts == MOST_COUNTED


def test_a_path_on_which_one_part_takes_long_counts_one_and_does_not_keep_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, now_s = dist.HashStore(), count(0.0, TWO_PAIRS.transfer_s)  # of a part of a quarter of the size
    monkeypatch.setattr(pair_stream, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    barrier(store).has_come("0/0/sends")
    kinds = together(barrier(store), "0/0", 2, 1 << 20).kinds
    asked = [next(kinds) for _ in range(6)]
    assert asked == [LOAD, LOAD, COUNTED, LOAD, LOAD, LOAD]


@pytest.mark.parametrize("size_bytes", [1, 250, 251, 252, 70_001])
def test_bytes_that_are_not_those_sent_are_counted(size_bytes: int) -> None:
    end = End(TWO_PAIRS, CPU, lambda: None)
    sent = pattern(size_bytes, 0, CPU)
    damaged = sent.clone()
    damaged[-1] += 1
    assert len(sent) == size_bytes
    assert wrong_bytes(end, [sent.clone(), damaged], sent) == 1
    assert wrong_bytes(end, [sent.clone()], sent) == 0
    assert wrong_bytes(end, [pattern(size_bytes, 1, CPU)], sent) == size_bytes
