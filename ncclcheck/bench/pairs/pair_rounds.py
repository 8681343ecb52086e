"""Node 0's side of `isolate`: round after round of pairs, until it is clear which nodes, links or groups are bad."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsRound
from ncclcheck.bench.pairs.round_limit import Finished, round_limit_s
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, TOOL_VERSION, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.isolation.next_round import Plan, Round, next_round
from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.model.benchmarks.isolation import PairOutcome
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.timeouts import PAIRS_READY_S, ROUND_ENDS_S, ROUND_POLL_S

Answers: TypeAlias = dict[int, PairAnswer]  # by ticket


class Lead(Struct, frozen=True):
    """How node 0 leads the rounds: through the store, until the deadline; `say` tells the user."""

    store: Store
    deadline: Deadline
    say: Callable[[str], None]


class Lost(Struct, frozen=True):
    """A node that answers no more, or whose own process failed: what became of it, and in which round (0: before)."""

    ticket: int
    outcome: PairOutcome
    round: int
    detail: str


class Rounds(Struct, frozen=True):
    """All tests, by tickets, and who was lost; `is_finished`: the planner had no more questions."""

    tests: tuple[PairTest, ...]
    lost: tuple[Lost, ...]
    is_finished: bool


def lead_rounds(lead: Lead, tickets: Sequence[int], plan: Plan, keep: Callable[[Rounds], None]) -> Rounds:
    """Let the nodes start, then lead them through the rounds; `keep` gets what is known after each."""
    tests: list[PairTest] = []
    lost: list[Lost] = []
    lead.say("starting what measures on every node")
    finished: list[Finished] = []
    lost += _lost(_gathered(lead, PairsRound(SCHEMA, TOOL_VERSION, 0), tickets, finished), tickets, 0)
    while True:
        members = [ticket for ticket in tickets if ticket not in {gone.ticket for gone in lost}]
        planned = next_round(plan, members, tests)
        order = PairsRound(SCHEMA, TOOL_VERSION, planned.number, planned.pairs)
        if not planned.pairs or lead.deadline.passed or lead.store.lost is not None:
            end_rounds(lead.store, planned.number)
            return Rounds(tuple(tests), tuple(lost), is_finished=not planned.pairs)
        lead.say(f"round {planned.number}: {len(planned.pairs)} pairs ({planned.why})")
        answers = _gathered(lead, order, members, finished)
        gone = _lost(answers, members, planned.number)
        lost += gone
        tests += [_test(planned, pair, answers) for pair in planned.pairs]
        keep(Rounds(tuple(tests), tuple(lost), is_finished=False))


def end_rounds(store: Store, number: int) -> None:
    """Tell the nodes that there is no round of this number."""
    store.set_document(keys.pairs_round(number), encode(PairsRound(SCHEMA, TOOL_VERSION, number)))


def _gathered(lead: Lead, order: PairsRound, members: Sequence[int], before: list[Finished]) -> Answers:
    """Give the order and return the answers. Whoever is far slower than those that finished is waited for no longer.

    `before` has those that finished in earlier rounds; those of this one are added to it.
    """
    lead.store.set_document(keys.pairs_round(order.number), encode(order))
    began = time.monotonic()
    answers: Answers = {}
    finished: dict[int, Finished] = {}
    busy = {end for pair in order.pairs for end in pair}
    while len(answers) < len(members) and lead.store.lost is None:
        now_s = time.monotonic() - began
        _read(lead.store, order.number, members, answers)
        for ticket in busy & answers.keys() - finished.keys():
            answer = answers[ticket]
            if answer.outcome == "ok":
                finished[ticket] = Finished(now_s, answer.seconds, answer.transfer_s)
        ends_s = round_limit_s(tuple(finished.values()), len(busy), before) if busy else PAIRS_READY_S
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


def _read(store: Store, number: int, members: Sequence[int], answers: Answers) -> None:
    """Read the answers that came since, all in one request."""
    waited = {keys.pairs_answer(number, ticket): ticket for ticket in members if ticket not in answers}
    for key, data in store.get_documents(tuple(waited)).items():
        try:
            answers[waited[key]] = read_message(data, PairAnswer, SMALL_LIMIT_BYTES)
        except DecodeError as error:
            refused = f"its answer was refused: {error}"
            answers[waited[key]] = PairAnswer("", "", outcome="died", detail=refused, own=True)


def _lost(answers: Mapping[int, PairAnswer], members: Sequence[int], number: int) -> list[Lost]:
    """Return who did not answer, and who says that the fault is its own."""
    found = []
    for ticket in members:
        answer = answers.get(ticket)
        if answer is None:
            found.append(Lost(ticket, "hang", number, "it does not answer any more"))
        elif answer.outcome != "ok" and answer.own:
            found.append(Lost(ticket, answer.outcome, number, answer.detail))
    return found


def _test(planned: Round, pair: tuple[int, int], answers: Mapping[int, PairAnswer]) -> PairTest:
    """Return the test of a pair: what the second received is what the first sent."""
    first, second = (answers.get(end) for end in pair)
    outcome: PairOutcome = "ok"
    detail = ""
    for answer in (first, second):
        if answer is None:
            outcome = "hang"
        elif answer.outcome != "ok" and outcome == "ok":
            outcome, detail = answer.outcome, answer.detail
    lone = len(planned.pairs) == 1
    return PairTest(
        planned.number,
        pair[0],
        pair[1],
        second.received_gbit_s if second is not None and outcome == "ok" else None,
        first.received_gbit_s if first is not None and outcome == "ok" else None,
        outcome,
        lone,
        detail,
    )
