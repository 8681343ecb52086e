"""A node's side of `isolate`: measure with the partner that node 0 names, and never wait without an end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from msgspec import Struct

from ncclcheck.bench.pairs.pair_orders import ROUND_LIMIT_BYTES, PairAnswer, PairsOrder, PairsRound
from ncclcheck.bench.pairs.pair_process import PairProcess
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.isolation.pair_tests import MOST_ROUND_TRIPS, MOST_TRANSFERS
from ncclcheck.model.benchmarks.isolation import PairOutcome
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import (
    PAIR_JOIN_S,
    PAIR_LONGEST_S,
    PAIR_MOVED_S,
    PAIR_TOGETHER_S,
    PAIR_TRANSFER_S,
    PAIRS_READY_S,
    PAIRS_START_BEAT_S,
    RING_OF_A_NODE_S,
    ROUND_POLL_S,
)

_OF_THE_NETWORK = ("connect", "timed out", "timeout")  # what Gloo and torch say of a peer


class PairPlace(Struct, frozen=True):
    """Where a node measures: its store, its ticket, and the master address and prefix of the run's keys."""

    store: Store
    ticket: int
    master_addr: str
    prefix: str
    deadline: Deadline


def run_pairs(place: PairPlace, order: PairsOrder) -> Missing | None:
    """Measure this node's pairs, round after round, until node 0 has no more; return why node 0 was lost."""
    pairs = _PairNode(place, order)
    number = 0
    try:
        while True:
            planned = _awaited(place, number)
            if isinstance(planned, Missing):
                return planned
            if planned.number and not planned.pairs and not planned.ring:
                return None
            answer = pairs.started() if planned.number == 0 else pairs.measured(planned)
            place.store.set_document(keys.pairs_answer(number, place.ticket), encode(answer))
            number += 1
    finally:
        pairs.close()


def _awaited(place: PairPlace, number: int) -> PairsRound | Missing:
    """Return the round as soon as node 0 has written it; Missing where it was lost, or its time is over."""
    data = place.store.wait_document(keys.pairs_round(number), place.deadline)
    if isinstance(data, Missing):
        return data
    try:
        planned = read_message(data, PairsRound, ROUND_LIMIT_BYTES)
    except DecodeError as error:
        return Missing("error", f"round {number}: {error}")
    if planned.number != number:
        return Missing("error", f"round {planned.number} stands in place of {number}")
    return planned


class _Signs:
    """The signs for node 0 that the pair of a round goes on. State: how many were given, when the last, and at what.

    The first is due where a usual pair is done.
    """

    def __init__(self, place: PairPlace, number: int) -> None:
        self._place, self._number = place, number
        self._given, self._moved, self._last_s = 0, 0, time.monotonic()

    def give(self, moved: int) -> None:
        """Tell node 0, not too often, if more was transferred."""
        if moved == self._moved or time.monotonic() - self._last_s < PAIR_MOVED_S:
            return
        self._place.store.set_document(keys.pairs_moved(self._number, self._place.ticket, self._given), b"1")
        self._given, self._moved, self._last_s = self._given + 1, moved, time.monotonic()


class _PairNode:
    """The pairs of this node. State: the process that measures them."""

    def __init__(self, place: PairPlace, order: PairsOrder) -> None:
        self._place, self._order = place, order
        self._process: PairProcess | None = None

    def close(self) -> None:
        """End what measures."""
        if self._process is not None:
            self._process.stop()

    def started(self) -> PairAnswer:
        """Start what measures, and wait until it has imported torch."""
        environment = self._order.environments.get(str(self._place.ticket), {})
        try:
            self._process = PairProcess(environment, on_nccl=self._order.backend == "nccl")
        except OSError as error:
            return _failed("died", str(error), is_own=True)
        why_not = self._imported(self._process)
        return PairAnswer(SCHEMA, TOOL_VERSION) if why_not is None else _failed("died", why_not, is_own=True)

    def _imported(self, process: PairProcess) -> str | None:
        """Wait for torch, with signs for node 0 that this node lives; return why it was not imported."""
        deadline = self._place.deadline.within(PAIRS_READY_S)
        for number in itertools.count():
            why_not = process.wait_until_ready(deadline.left(PAIRS_START_BEAT_S))
            if why_not is None:
                return None
            if why_not.missing != "timeout":
                return why_not.detail
            if deadline.passed:
                return f"torch was not imported within {PAIRS_READY_S:.0f} s"
            self._place.store.set_document(keys.pairs_start(self._place.ticket, number), b"1")
        raise AssertionError  # the numbers do not end

    def measured(self, planned: PairsRound) -> PairAnswer:
        """Measure with this node's partner of the round; nothing where it has none."""
        group = planned.group_of(self._place.ticket)
        if group is None:
            return PairAnswer(SCHEMA, TOOL_VERSION)
        if self._process is None:
            return _failed("died", "nothing was started to measure pairs", is_own=True)
        return self._together(planned, group, self._process)

    def _together(self, planned: PairsRound, group: tuple[int, ...], process: PairProcess) -> PairAnswer:
        began = time.monotonic()
        try:
            process.begin(self._tasks(planned, group))
        except OSError as error:
            return _failed("died", f"the process that measures pairs: {error}", is_own=True)
        deadline = self._place.deadline.within(PAIR_LONGEST_S + len(group) * RING_OF_A_NODE_S)
        signs = _Signs(self._place, planned.number)
        while not (results := process.poll(planned.number)):
            if deadline.passed or self._is_over(planned.number):
                stopped = process.is_stopped
                process.kill_children()
                detail = "its process is stopped" if stopped else "its partner did not go on"
                return _failed("hang", detail, is_own=stopped)
            signs.give(process.moved)
            time.sleep(ROUND_POLL_S)
        process.kill_children()  # where one of several failed
        return answer_of(results, time.monotonic() - began)

    def _tasks(self, planned: PairsRound, group: tuple[int, ...]) -> tuple[PairTask, ...]:
        """Return what each GPU of this node does in the round."""
        place, order = self._place, self._order
        prefix = keys.pair_group(place.prefix, order.nonce, planned.number, group[0])
        rank = group.index(place.ticket)
        shift = planned.rail_shift if rank else 0
        return tuple(
            PairTask(
                planned.number,
                rank,
                (lane + shift) % order.rails,
                place.master_addr,
                place.store.port,
                f"{prefix}/{lane}",
                order.backend,
                order.most_bytes,
                len(group),
                min(planned.ring_bytes, order.most_bytes) if planned.ring else 0,
                max(1, min(planned.transfers, MOST_TRANSFERS)),
                planned.at_once,
                max(0, min(planned.round_trips, MOST_ROUND_TRIPS)),
                2 * len(planned.pairs) * order.rails if planned.together else 0,
                keys.pair_round(place.prefix, order.nonce, planned.number),
                transfer_s=PAIR_TOGETHER_S if planned.together else PAIR_TRANSFER_S,
                join_s=PAIR_JOIN_S + len(group) * RING_OF_A_NODE_S,
            )
            for lane in range(order.rails)
        )

    def _is_over(self, number: int) -> bool:
        return not isinstance(self._place.store.get(keys.pairs_over(number)), Missing)


def answer_of(results: Sequence[PairResult], seconds: float) -> PairAnswer:
    """Return the report to node 0 on a test that took so many seconds: of several rails the slowest one decides."""
    wrong = sum(result.wrong for result in results)
    if wrong:
        return _failed("died", f"{wrong} bytes arrived with wrong values", is_own=False)
    error = next((result.error for result in results if result.error), "")
    if error:
        of_the_network = any(words in error.lower() for words in _OF_THE_NETWORK)
        return _failed("unreachable" if of_the_network else "died", error, is_own=not of_the_network)
    rates = tuple(result.received_gbit_s or 0.0 for result in results)
    return PairAnswer(
        SCHEMA,
        TOOL_VERSION,
        received_gbit_s=min(rates),
        seconds=round(seconds, 3),
        transfer_s=round(max(result.transfer_s for result in results), 4),
        rails_gbit_s=rates if len(rates) > 1 else (),
        deviation=round(max(result.deviation for result in results), 5),
        round_trip_us=round(max(result.round_trip_us for result in results), 2),
    )


def _failed(outcome: PairOutcome, detail: str, *, is_own: bool) -> PairAnswer:
    return PairAnswer(SCHEMA, TOOL_VERSION, outcome=outcome, detail=detail, own=is_own)
