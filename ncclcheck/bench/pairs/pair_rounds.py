"""Node 0's side of `isolate`: round after round of pairs, until it is clear which nodes, links or groups are bad."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.pairs.pair_orders import PairAnswer, PairsRound
from ncclcheck.bench.pairs.pair_stream import LEAST_BYTES
from ncclcheck.bench.pairs.round_answers import (
    Answers,
    RoundContext,
    gather_round,
    gather_start,
    late_answers,
)
from ncclcheck.bench.pairs.round_limit import Finished
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.isolation.conclusion import conclude
from ncclcheck.measure.isolation.doubling import RingTest, next_ring
from ncclcheck.measure.isolation.next_round import Plan, Round
from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.model.benchmarks.isolation import NO_ANSWER, PairOutcome, Unheard
from ncclcheck.model.codec import encode
from ncclcheck.timeouts import PAIR_TRANSFER_S, ROUND_ENDS_S, ROUND_POLL_S

TWO_NODES = 2


class Lost(Struct, frozen=True):
    """A node that answers no more, or whose own process failed: what became of it, and in which round (0: before).

    `stood_still_s`: for so long node 0 itself did not run since that round began.
    """

    ticket: int
    outcome: PairOutcome
    round: int
    detail: str
    stood_still_s: float = 0.0


class Unanswered(Struct, frozen=True):
    """A node that had not answered when a round was over, at that time; times without those node 0 stood still.

    `stood_still_s`: for how long node 0 had stood still when the round began.
    """

    ticket: int
    round: int
    over_s: float
    stood_still_s: float


class Rounds(Struct, frozen=True):
    """All tests, by tickets, and who was lost; `is_finished`: the planner had no more questions.

    `unheard`: who fell silent in a way that says nothing of them.
    """

    tests: tuple[PairTest, ...]
    lost: tuple[Lost, ...]
    is_finished: bool
    rings: tuple[RingTest, ...] = ()
    unheard: tuple[Lost, ...] = ()

    @property
    def missing(self) -> frozenset[int]:
        """Return the tickets of all that take part no more."""
        return frozenset(gone.ticket for gone in (*self.lost, *self.unheard))

    def unheard_hosts(self, host_of: Mapping[int, str]) -> Unheard | None:
        """Return the hosts that fell silent so, for the result."""
        if not self.unheard:
            return None
        hosts = tuple(sorted(host_of[gone.ticket] for gone in self.unheard))
        stood_still_s = round(max(gone.stood_still_s for gone in self.unheard), 1)
        if stood_still_s:
            return Unheard(hosts, "stood_still", stood_still_s)
        return Unheard(hosts, "two_nodes" if len(host_of) == TWO_NODES else "most")


def rounds_of(nodes: int, tests: Sequence[PairTest], lost: Sequence[Lost], *, is_finished: bool) -> Rounds:
    """Return the rounds, with the silent nodes set apart whose silence says nothing of them.

    That is where node 0 itself stood still meanwhile, or where most of the other nodes (of two nodes: the other one)
    fell silent in one round, which points as well to node 0 or its path.
    """
    silent = Counter(gone.round for gone in lost if gone.detail == NO_ANSWER)
    is_said: dict[bool, list[Lost]] = {True: [], False: []}
    for gone in lost:
        is_most = 2 * silent[gone.round] > nodes - 1
        tells_nothing = gone.stood_still_s > 0 or is_most
        is_said[gone.detail != NO_ANSWER or not tells_nothing].append(gone)
    return Rounds(tuple(tests), tuple(is_said[True]), is_finished, unheard=tuple(is_said[False]))


def lead_rounds(
    lead: RoundContext, tickets: Sequence[int], plan: Plan, keep: Callable[[Rounds], None]
) -> Rounds:
    """Let the nodes start, then lead them through the rounds; `keep` gets what is known after each.

    Once node 0 has lost its own store, who does not answer is nobody's fault: what was known before is returned.
    """
    tests: list[PairTest] = []
    lost: list[Lost] = []
    silent: list[Unanswered] = []
    lead.say("starting what measures on every node")
    finished: list[Finished] = []
    answers = gather_start(lead, tickets)
    lost += _failed(answers, tickets, 0, lead.stood_still_s()) if lead.store.lost is None else []
    while True:
        known = rounds_of(len(tickets), tests, lost, is_finished=False)
        members = _without(tickets, (*lost, *silent))
        planned = plan.following(members, tests)
        if not planned.pairs and silent:
            silent, found = _heard(lead, silent, at_last=True)
            if lead.store.lost is not None:
                return known
            lost += found
            continue
        order = _order(planned)
        if not planned.pairs or lead.deadline.passed or lead.store.lost is not None:
            return _lead_rings(lead, members, plan, replace(known, is_finished=not planned.pairs))
        lead.say(f"round {planned.number}: {len(planned.pairs)} pairs ({planned.why})")
        stood_still_s = lead.stood_still_s()
        answers = gather_round(lead, order, members, finished)
        silent, found = _heard(lead, silent)
        if lead.store.lost is not None:
            return known
        lost += found
        lost += _failed(answers, [ticket for ticket in members if ticket in answers], planned.number)
        over_s = _ran_s(lead)
        silent += [
            Unanswered(ticket, planned.number, over_s, stood_still_s)
            for ticket in members
            if ticket not in answers
        ]
        tests += [_test(planned, pair, answers) for pair in planned.pairs]
        silenced = [_silenced(lead, entry) for entry in silent]
        keep(rounds_of(len(tickets), tests, [*lost, *silenced], is_finished=False))


def _order(planned: Round) -> PairsRound:
    return PairsRound(
        SCHEMA,
        TOOL_VERSION,
        planned.number,
        planned.pairs,
        transfers=planned.transfers,
        at_once=planned.at_once,
        round_trips=planned.round_trips,
        rail_shift=planned.rail_shift,
        together=planned.together,
    )


def _lead_rings(lead: RoundContext, members: Sequence[int], plan: Plan, rounds: Rounds) -> Rounds:
    """Lead rings of doubling size, if the plan wants them and nobody is bad in pairs; then end the rounds."""
    number = max((test.round for test in rounds.tests), default=0) + 1
    is_wanted = plan.rings and rounds.is_finished and not rounds.missing
    found = conclude(plan, members, rounds.tests) if is_wanted else None
    if found is None or found.is_bad or found.undecided or found.scale is None:
        end_rounds(lead.store, number)
        return rounds
    size_bytes = max(LEAST_BYTES, int(found.scale.reference_gbit_s * 1e9 / 8 * PAIR_TRANSFER_S))
    rings: list[RingTest] = []
    before: list[Finished] = []
    while not lead.deadline.passed and lead.store.lost is None:
        ring = next_ring(plan, members, rings, found.scale.spread)
        if not ring:
            break
        lead.say(f"{len(ring)} nodes at once, in a ring")
        order = PairsRound(SCHEMA, TOOL_VERSION, number, ring=ring, ring_bytes=size_bytes)
        rings.append(_ring_test(order, gather_round(lead, order, members, before)))
        number += 1
    end_rounds(lead.store, number)
    return replace(rounds, rings=tuple(rings))


def _ring_test(order: PairsRound, answers: Answers) -> RingTest:
    ring_answers = [answers.get(ticket) for ticket in order.ring]
    failed = next(
        (answer.outcome for answer in ring_answers if answer is not None and answer.outcome != "ok"), None
    )
    rates = [answer.received_gbit_s or 0.0 for answer in ring_answers if answer is not None]
    if failed is not None or len(rates) < len(ring_answers):
        return RingTest(order.number, order.ring, None, failed or "hang")
    return RingTest(order.number, order.ring, min(rates))


def end_rounds(store: Store, number: int) -> None:
    """Tell the nodes that there is no round of this number."""
    store.set_document(keys.pairs_round(number), encode(PairsRound(SCHEMA, TOOL_VERSION, number)))


def _without(tickets: Sequence[int], missing: Sequence[Lost | Unanswered]) -> list[int]:
    absent = {entry.ticket for entry in missing}
    return [ticket for ticket in tickets if ticket not in absent]


def _heard(
    lead: RoundContext, silent: Sequence[Unanswered], *, at_last: bool = False
) -> tuple[list[Unanswered], list[Lost]]:
    """Return who is still silent, and who is lost: the others have answered since, and take part again.

    `at_last`: there is no further round that could run meanwhile, so they are waited for.
    """
    waiting, lost = list(silent), list[Lost]()
    while waiting:
        for entry in tuple(waiting):
            answers = late_answers(lead.store, entry.round, (entry.ticket,))
            is_late = _ran_s(lead) > entry.over_s + ROUND_ENDS_S
            if answers or is_late:
                waiting.remove(entry)
                lost += (
                    _failed(answers, (entry.ticket,), entry.round) if answers else [_silenced(lead, entry)]
                )
        if not at_last:
            break
        if lead.deadline.passed or lead.store.lost is not None:
            return [], lost + [_silenced(lead, entry) for entry in waiting]
        time.sleep(ROUND_POLL_S)
    return waiting, lost


def _ran_s(lead: RoundContext) -> float:
    """Return the time by the clock without the time that node 0 stood still."""
    return time.monotonic() - lead.stood_still_s()


def _silenced(lead: RoundContext, entry: Unanswered) -> Lost:
    stood_still_s = lead.stood_still_s() - entry.stood_still_s
    return Lost(entry.ticket, "hang", entry.round, NO_ANSWER, stood_still_s)


def _failed(
    answers: Mapping[int, PairAnswer], members: Sequence[int], number: int, stood_still_s: float = 0.0
) -> list[Lost]:
    """Return who did not answer, and who says that the fault is its own."""
    found = []
    for ticket in members:
        answer = answers.get(ticket)
        if answer is None:
            found.append(Lost(ticket, "hang", number, NO_ANSWER, stood_still_s))
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
        _rails(first, second, planned.rail_shift) if outcome == "ok" else (),
        planned.transfers,
        (second.deviation, first.deviation) if first is not None and second is not None else (0.0, 0.0),
        planned.rail_shift,
        first.round_trip_us if first is not None and outcome == "ok" else 0.0,
    )


def _rails(
    first: PairAnswer | None, second: PairAnswer | None, shift: int
) -> tuple[tuple[float, float], ...]:
    """Return what each GPU of the first reached forth and back, where several measured."""
    if first is None or second is None or len(first.rails_gbit_s) != len(second.rails_gbit_s):
        return ()
    forth = second.rails_gbit_s
    return tuple((forth[(rail + shift) % len(forth)], back) for rail, back in enumerate(first.rails_gbit_s))
