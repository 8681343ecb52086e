"""Benchmark two environments in turns, each with its own set of workers, as node 0 leads it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.bench_watch import BenchWatch
from ncclcheck.bench.turns import Turn, mean_of
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.paired import side_of_turn
from ncclcheck.model.bench import RankFailure
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import listed
from ncclcheck.timeouts import COMPARE_ROUNDS_S, TURN_LOOK_S, TURN_POLL_S

SIZES = (1 << 18, 1 << 20, 1 << 22, 1 << 24)
ROUNDS, LEAST_ROUNDS, ROUNDS_ALONE = 12, 8, 6
ROUND_US = 150e3
LONGEST_CALL_US = 300e3
MOST_ITERATIONS = 256
_OVERHEAD_US = 100e3  # of a turn: its call that is not timed apart
# What becomes of a rank through its network; the others are accidents, of which no setting is the cause.
_OF_THE_NETWORK = frozenset({"late", "stuck", "error"})
_SOURCE_LINE = re.compile(r"\[/[^\s\]]+:\d+\] ")  # where in its source a library raised an error
T = TypeVar("T")


class WorkerSet:
    """One of the two sets of workers. State: the turns given to it, its times, and why it has no more."""

    def __init__(self, store: Store, watch: BenchWatch, order: BenchOrder, cannot_start: str = "") -> None:
        self._store, self.watch, self.order = store, watch, order
        self.started = not cannot_start
        self.times_us: list[float] = []
        self.failure = cannot_start
        self.by_accident = False  # what ended it says nothing about its environment
        self._turns = 0
        self._looked_at = 0.0

    @property
    def alive(self) -> bool:
        """Return whether it can still take a turn."""
        return not self.failure

    @property
    def ready(self) -> bool:
        """Return whether every rank waits for a turn."""
        waiting = {state.rank for state in self.watch.states() if state.phase == "waiting"}
        return len(waiting) == self.order.world_size

    def look(self) -> None:
        """End the set if one of its ranks has failed."""
        if not self.alive or time.monotonic() - self._looked_at < TURN_LOOK_S:
            return
        self._looked_at = time.monotonic()
        if failures := self.watch.look():
            self.end(_in_words(failures), by_accident=self._is_accident(failures))

    def end(self, failure: str, *, by_accident: bool) -> None:
        """Tell its workers to end, so that they do not disturb the other set."""
        self.failure, self.by_accident = failure, by_accident
        self.watch.stop()

    def give_turn(self, size_bytes: int, iterations: int) -> None:
        """Tell its ranks what to measure next."""
        turn = Turn("all_reduce", size_bytes, iterations)
        self._store.set(keys.bench_turn(self.order.name, self._turns), encode(turn))
        self._turns += 1

    def time_us(self) -> float | None:
        """Return the time of its last turn, once it is there."""
        data = self._store.get(keys.bench_round(self.order.name, self._turns - 1))
        try:
            return None if isinstance(data, Missing) else mean_of(data)
        except DecodeError as error:
            self.end(f"a time was refused: {error}", by_accident=True)
            return None

    @property
    def store_lost(self) -> Missing | None:
        """Return why its ranks can get no more orders; None while they can."""
        return self._store.lost

    def _is_accident(self, failures: Sequence[RankFailure]) -> bool:
        ranks_with_own_error = {state.rank for state in self.watch.states() if state.error_kind == "own"}
        return any(
            failure.state not in _OF_THE_NETWORK or failure.rank in ranks_with_own_error
            for failure in failures
        )


class AbBenchmark:
    """Two sets of workers take turns. State: the size they have come to, and that of each set."""

    def __init__(self, sides: Sequence[WorkerSet], deadline: Deadline) -> None:
        self.sides, self._deadline = sides, deadline
        self.size_bytes = SIZES[0]

    def measure(self) -> None:
        """Measure until each side has its times, or it is known why not."""
        for side in self.sides:
            self._wait(side, lambda side=side: side.ready or None)  # type: ignore[misc]
        estimates_us = self._sized()
        rounds, iterations = self._rounds(estimates_us)
        for turn in range(2 * rounds):
            side = self.sides[side_of_turn(turn)]
            if side.alive and (time_us := self._turn(side, iterations[id(side)])) is not None:
                side.times_us.append(time_us)

    def give_up(self, why: str) -> None:
        """End both sides without blaming their environments."""
        for side in self.sides:
            if side.alive:
                side.end(why, by_accident=True)

    def _sized(self) -> dict[int, float]:
        """Choose a size that takes long enough and not too long; return each side's time for one call of it."""
        times_us = self._timed(2)
        slowest_us = max(times_us.values(), default=LONGEST_CALL_US)
        fits = [size for size in SIZES if slowest_us * size / SIZES[0] <= LONGEST_CALL_US / 2]
        self.size_bytes = max(fits, default=SIZES[0])
        times_us = self._timed(2)
        while self.size_bytes > SIZES[0] and max(times_us.values(), default=0.0) > LONGEST_CALL_US:
            self.size_bytes = SIZES[SIZES.index(self.size_bytes) - 1]
            times_us = self._timed(2)
        return times_us

    def _rounds(self, times_us: dict[int, float]) -> tuple[int, dict[int, int]]:
        """Return how many rounds, and each side's iterations in one: rounds of about equal length."""
        iterations = {
            side: max(1, min(MOST_ITERATIONS, round(ROUND_US / max(time_us, 1.0))))
            for side, time_us in times_us.items()
        }
        if len(times_us) < len(self.sides):
            return ROUNDS_ALONE, iterations
        both_us = sum(times_us[side] * (1 + iterations[side]) + _OVERHEAD_US for side in times_us)
        return max(LEAST_ROUNDS, min(ROUNDS, int(COMPARE_ROUNDS_S * 1e6 / both_us))), iterations

    def _timed(self, iterations: int) -> dict[int, float]:
        found = {id(side): self._turn(side, iterations) for side in self.sides if side.alive}
        return {side: time_us for side, time_us in found.items() if time_us is not None}

    def _turn(self, side: WorkerSet, iterations: int) -> float | None:
        side.give_turn(self.size_bytes, iterations)
        return self._wait(side, side.time_us)

    def _wait(self, side: WorkerSet, ready: Callable[[], T | None]) -> T | None:
        """Return what is waited for; None where the side ended without it."""
        while side.alive:
            for watched in self.sides:
                watched.look()
            value = ready()
            if value is not None:
                return value
            if self._deadline.passed or side.store_lost is not None:
                self.give_up(
                    f"the store was lost: {side.store_lost}" if side.store_lost else "the time was over"
                )
            time.sleep(TURN_POLL_S)
        return None


def _in_words(failures: Sequence[RankFailure]) -> str:
    """Return who was where; ranks that failed alike in one sentence."""
    alike: dict[tuple[str, str, str], list[RankFailure]] = {}
    for failure in failures:
        kind = (failure.state, failure.where, _SOURCE_LINE.sub("", failure.detail))
        alike.setdefault(kind, []).append(failure)
    return "; ".join(
        f"{_ranks(same)}: {state} in {where} after {max(failure.waited_s for failure in same):.0f} s: {detail}"
        for (state, where, detail), same in alike.items()
    )


def _ranks(failures: Sequence[RankFailure]) -> str:
    return listed((f"rank {failure.rank} on {failure.host}" for failure in failures), 4)
