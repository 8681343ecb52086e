"""A node's side of `isolate`: measure with the partner that node 0 names, and never wait without an end."""

from __future__ import annotations

import time

from msgspec import Struct

from ncclcheck.bench.pairs.pair_orders import ROUND_LIMIT_BYTES, PairAnswer, PairsOrder, PairsRound
from ncclcheck.bench.pairs.pair_process import PairProcess
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.benchmarks.isolation import PairOutcome
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import PAIR_LONGEST_S, PAIRS_READY_S, ROUND_POLL_S

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
            if planned.number and not planned.pairs:
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
            return _failed("died", str(error), own=True)
        why_not = self._process.wait_until_ready(min(PAIRS_READY_S, self._place.deadline.left()))
        return (
            PairAnswer(SCHEMA, TOOL_VERSION) if why_not is None else _failed("died", why_not.detail, own=True)
        )

    def measured(self, planned: PairsRound) -> PairAnswer:
        """Measure with this node's partner of the round; nothing where it has none."""
        pair = planned.pair_of(self._place.ticket)
        if pair is None:
            return PairAnswer(SCHEMA, TOOL_VERSION)
        if self._process is None:
            return _failed("died", "nothing was started to measure pairs", own=True)
        return self._pair(planned, pair, self._process)

    def _pair(self, planned: PairsRound, pair: tuple[int, int], process: PairProcess) -> PairAnswer:
        place, order, began = self._place, self._order, time.monotonic()
        task = PairTask(
            planned.number,
            pair.index(place.ticket),
            0,
            place.master_addr,
            place.store.port,
            keys.pair_group(place.prefix, order.nonce, planned.number, pair),
            order.backend,
            order.most_bytes,
        )
        try:
            process.begin(task)
        except OSError as error:
            return _failed("died", f"the process that measures pairs: {error}", own=True)
        deadline = place.deadline.within(PAIR_LONGEST_S)
        while (result := process.poll(planned.number)) is None:
            if deadline.passed or self._is_over(planned.number):
                stopped = process.is_stopped
                process.kill_child()
                detail = "its process is stopped" if stopped else "its partner did not go on"
                return _failed("hang", detail, own=stopped)
            time.sleep(ROUND_POLL_S)
        return answer_of(result, time.monotonic() - began)

    def _is_over(self, number: int) -> bool:
        return not isinstance(self._place.store.get(keys.pairs_over(number)), Missing)


def answer_of(result: PairResult, seconds: float) -> PairAnswer:
    """Return what node 0 is told of a test that took so many seconds."""
    if result.wrong:
        return _failed("died", f"{result.wrong} bytes arrived with wrong values", own=False)
    if not result.error:
        return PairAnswer(
            SCHEMA,
            TOOL_VERSION,
            received_gbit_s=result.received_gbit_s,
            seconds=round(seconds, 3),
            transfer_s=round(result.transfer_s, 4),
        )
    of_the_network = any(words in result.error.lower() for words in _OF_THE_NETWORK)
    return _failed("unreachable" if of_the_network else "died", result.error, own=not of_the_network)


def _failed(outcome: PairOutcome, detail: str, *, own: bool) -> PairAnswer:
    return PairAnswer(SCHEMA, TOOL_VERSION, outcome=outcome, detail=detail, own=own)
