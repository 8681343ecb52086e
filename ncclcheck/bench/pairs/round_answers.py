"""What the nodes answer to an order of node 0 to measure, and for how long they are waited for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsRound, answer_faults
from ncclcheck.bench.pairs.round_limit import Finished, round_limit_s
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.timeouts import (
    PAIR_MOVED_S,
    PAIR_STILL_S,
    PAIRS_READY_S,
    PAIRS_START_SILENT_S,
    PAIRS_START_TOLD_S,
    RING_OF_A_NODE_S,
    ROUND_LEAST_S,
    ROUND_MOVING_S,
    ROUND_OVER_S,
    ROUND_POLL_S,
)

REFUSED = "its answer was refused"  # begins what becomes of a node for which anybody may have written
Answers: TypeAlias = dict[int, PairAnswer]  # by ticket


class RoundContext(Struct, frozen=True):
    """How node 0 leads the rounds: through the store, until the deadline; `say` prints a line for the user.

    `stood_still_s`: for how long node 0 itself did not run so far. That time counts for nobody.
    """

    store: Store
    deadline: Deadline
    say: Callable[[str], None]
    stood_still_s: Callable[[], float] = float


def gather_start(lead: RoundContext, members: Sequence[int]) -> Answers:
    """Ask who is ready, and wait as long as nodes that are not give signs: to import torch is not to hang.

    A node gives up by itself after `PAIRS_READY_S`, and says so.
    """
    lead.store.set_document(keys.pairs_round(0), encode(PairsRound(SCHEMA, TOOL_VERSION, 0)))
    began = time.monotonic() - lead.stood_still_s()
    last_s = dict.fromkeys(members, 0.0)
    signs = dict.fromkeys(members, 0)
    answers: Answers = {}
    is_told = False
    while lead.store.lost is None and not lead.deadline.passed:
        now_s = time.monotonic() - lead.stood_still_s() - began
        _read(lead.store, 0, members, answers)
        waited = [ticket for ticket in members if ticket not in answers]
        for ticket in _signed(lead.store, {ticket: signs[ticket] for ticket in waited}):
            signs[ticket] += 1
            last_s[ticket] = now_s
        if all(now_s - last_s[ticket] > PAIRS_START_SILENT_S for ticket in waited):
            break
        if now_s > PAIRS_READY_S + PAIRS_START_SILENT_S:
            break
        if now_s > PAIRS_START_TOLD_S and not is_told:
            is_told = True
            lead.say(f"waiting for {len(waited)} of {len(members)} nodes to import torch")
        time.sleep(ROUND_POLL_S)
    return answers


def gather_round(
    lead: RoundContext, order: PairsRound, members: Sequence[int], before: list[Finished]
) -> Answers:
    """Give the order and return the answers. Pairs that are far later than the others, and stand still, are given up.

    A pair that is late but goes on is slow, and no hang: it is waited for, for ROUND_MOVING_S at most. `before` has
    those that finished in earlier rounds; those of this one are added to it.
    """
    lead.store.set_document(keys.pairs_round(order.number), encode(order))
    began = time.monotonic() - lead.stood_still_s()
    signs, late_at_s = _PairSigns(lead.store, order.number), math.inf
    answers: Answers = {}
    finished: dict[int, Finished] = {}
    busy = {end for group in (*order.pairs, order.ring) for end in group}
    while len(answers) < len(members) and lead.store.lost is None:
        now_s = time.monotonic() - lead.stood_still_s() - began
        _read(lead.store, order.number, members, answers)
        for ticket in busy & answers.keys() - finished.keys():
            answer = answers[ticket]
            if answer.outcome == "ok":
                took_s = min(answer.seconds, now_s + ROUND_LEAST_S)  # no pair takes longer than its round
                finished[ticket] = Finished(now_s, took_s, min(answer.transfer_s, took_s), order.transfers)
        late_s = now_s - _limit_s(order, tuple(finished.values()), len(busy), before)
        late_at_s = min(late_at_s, now_s) if late_s > 0 else late_at_s
        goes_on = now_s - late_at_s < ROUND_MOVING_S and signs.any_moves(busy - answers.keys(), now_s)
        if lead.deadline.passed or (late_s > 0 and not goes_on):
            break
        time.sleep(ROUND_POLL_S)
    if len(answers) < len(members):
        lead.store.set(keys.pairs_over(order.number), b"1")
        _hear_partners(lead, order, members, answers)
    before += finished.values()
    return answers


class _PairSigns:
    """Signs of life of the ends while they measure. State: the signs so far, the time of the last, the last look."""

    def __init__(self, store: Store, number: int) -> None:
        self._store, self._number = store, number
        self._given: dict[int, int] = {}  # by ticket
        self._last_s: dict[int, float] = {}
        self._looked_s = 0.0

    def any_moves(self, tickets: Iterable[int], now_s: float) -> bool:
        """Return whether one of them gave a sign lately; look for signs where the last look is long ago."""
        waited = tuple(tickets)
        if now_s - self._looked_s >= PAIR_MOVED_S:
            self._looked_s = now_s
            key_of = {
                keys.pairs_moved(self._number, ticket, self._given.get(ticket, 0)): ticket
                for ticket in waited
            }
            for key in self._store.get_documents(tuple(key_of)):
                self._given[key_of[key]] = self._given.get(key_of[key], 0) + 1
                self._last_s[key_of[key]] = now_s
        return any(now_s - self._last_s[ticket] < PAIR_STILL_S for ticket in waited if ticket in self._last_s)


def _hear_partners(lead: RoundContext, order: PairsRound, members: Sequence[int], answers: Answers) -> None:
    """Wait until one end of each group has answered at least: who lives only has to kill a process."""
    until = lead.deadline.within(ROUND_OVER_S)
    groups = [group for group in (*order.pairs, order.ring) if group]
    while not all(answers.keys() & group for group in groups):
        if until.passed or lead.store.lost is not None:
            break
        time.sleep(ROUND_POLL_S)
        _read(lead.store, order.number, members, answers)


def late_answers(store: Store, number: int, members: Iterable[int]) -> Answers:
    """Return what these say of a round that was over without them."""
    answers: Answers = {}
    _read(store, number, tuple(members), answers)
    return answers


def _limit_s(order: PairsRound, finished: Sequence[Finished], busy: int, before: Sequence[Finished]) -> float:
    more_s = len(order.ring) * RING_OF_A_NODE_S
    return more_s + round_limit_s(finished, busy, before, order.transfers)


def _signed(store: Store, awaited: Mapping[int, int]) -> list[int]:
    """Return the nodes that gave the sign of the awaited number, all in one request."""
    ticket_of = {keys.pairs_start(ticket, number): ticket for ticket, number in awaited.items()}
    return [ticket_of[key] for key in store.get_documents(tuple(ticket_of))]


def _read(store: Store, number: int, members: Sequence[int], answers: Answers) -> None:
    """Read the new answers, all in one request."""
    waited = {keys.pairs_answer(number, ticket): ticket for ticket in members if ticket not in answers}
    for key, data in store.get_documents(tuple(waited)).items():
        try:
            answer = read_message(data, PairAnswer, SMALL_LIMIT_BYTES)
            refused = ", ".join(answer_faults(answer))
        except DecodeError as error:
            refused = str(error)
        if refused:
            detail = f"{REFUSED}: {refused}"
            answer = PairAnswer("", "", outcome="died", detail=detail, own=True)
        answers[waited[key]] = answer
