"""A rank that measures in turns with another set of ranks: it sleeps until its turn comes, and measures one round."""

from __future__ import annotations

from itertools import count
from typing import Protocol

from msgspec import Struct

from ncclcheck.bench.point import BenchRank, measure_round
from ncclcheck.exchange.store import keys
from ncclcheck.model.bench import Op
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError


class Turn(Struct, frozen=True, forbid_unknown_fields=True):
    """One round: a collective, its size and how often. No iterations: there are no more turns."""

    op: Op
    size_bytes: int
    iterations: int


class TurnResult(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a turn: the mean over its iterations of the slowest rank's time."""

    mean_us: float


class TurnStore(Protocol):
    """The store as a rank uses it."""

    def wait_for(self, key: str) -> bytes:
        """Return the value as soon as it is set; meanwhile the rank takes no CPU time."""
        ...

    def set(self, key: str, value: bytes) -> None:
        """Store the value."""
        ...


def take_turns(rank: BenchRank, name: str, store: TurnStore) -> None:
    """Measure every turn until there are no more. Raises DecodeError for a message that is not a turn."""
    for number in count():
        rank.progress.move("waiting")
        turn = decode(store.wait_for(keys.bench_turn(name, number)), Turn)
        if turn.iterations < 1:
            return
        if turn.size_bytes not in rank.task.plan.sizes_bytes:
            raise DecodeError(f"turn {number}: {turn.size_bytes} bytes are not in the plan")
        mean_us = measure_round(rank, turn.op, turn.size_bytes, turn.iterations)
        if rank.task.rank == 0:
            store.set(keys.bench_round(name, number), encode(TurnResult(mean_us)))


def mean_of(data: bytes) -> float:
    """Return the time of a round in microseconds. Raises DecodeError when there is none."""
    mean_us = decode(data, TurnResult).mean_us
    if not mean_us > 0.0:
        raise DecodeError(f"{mean_us} us is no time of a round")
    return mean_us
