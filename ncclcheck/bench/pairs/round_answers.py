"""What the nodes answer to an order of node 0 to measure, and for how long they are waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsRound
from ncclcheck.bench.pairs.round_limit import Finished, round_limit_s, start_limit_s
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SMALL_LIMIT_BYTES, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.timeouts import RING_OF_A_NODE_S, ROUND_ENDS_S, ROUND_POLL_S

Answers: TypeAlias = dict[int, PairAnswer]  # by ticket


class Lead(Struct, frozen=True):
    """How node 0 leads the rounds: through the store, until the deadline; `say` tells the user."""

    store: Store
    deadline: Deadline
    say: Callable[[str], None]


def gather_round(lead: Lead, order: PairsRound, members: Sequence[int], before: list[Finished]) -> Answers:
    """Give the order and return the answers. Whoever is far slower than those that finished is waited for no longer.

    `before` has those that finished in earlier rounds; those of this one are added to it.
    """
    lead.store.set_document(keys.pairs_round(order.number), encode(order))
    began = time.monotonic()
    answers: Answers = {}
    finished: dict[int, Finished] = {}
    ready_s: list[float] = []
    busy = {end for group in (*order.pairs, order.ring) for end in group}
    while len(answers) < len(members) and lead.store.lost is None:
        now_s = time.monotonic() - began
        _read(lead.store, order.number, members, answers)
        for ticket in busy & answers.keys() - finished.keys():
            answer = answers[ticket]
            if answer.outcome == "ok":
                finished[ticket] = Finished(now_s, answer.seconds, answer.transfer_s)
        if not busy and len(answers) > len(ready_s):
            ready_s += [now_s] * (len(answers) - len(ready_s))
        ends_s = (
            _limit_s(order, tuple(finished.values()), len(busy), before)
            if busy
            else start_limit_s(ready_s, len(members))
        )
        if now_s > ends_s or lead.deadline.passed:
            break
        time.sleep(ROUND_POLL_S)
    if len(answers) < len(members):
        lead.store.set(keys.pairs_over(order.number), b"1")
        until = lead.deadline.within(ROUND_ENDS_S)
        while len(answers) < len(members) and not until.passed and lead.store.lost is None:
            _read(lead.store, order.number, members, answers)
            time.sleep(ROUND_POLL_S)
    before += finished.values()
    return answers


def _limit_s(order: PairsRound, finished: Sequence[Finished], busy: int, before: Sequence[Finished]) -> float:
    more_s = len(order.ring) * RING_OF_A_NODE_S
    return more_s + round_limit_s(finished, busy, before)


def _read(store: Store, number: int, members: Sequence[int], answers: Answers) -> None:
    """Read the answers that came since, all in one request."""
    waited = {keys.pairs_answer(number, ticket): ticket for ticket in members if ticket not in answers}
    for key, data in store.get_documents(tuple(waited)).items():
        try:
            answers[waited[key]] = read_message(data, PairAnswer, SMALL_LIMIT_BYTES)
        except DecodeError as error:
            refused = f"its answer was refused: {error}"
            answers[waited[key]] = PairAnswer("", "", outcome="died", detail=refused, own=True)
