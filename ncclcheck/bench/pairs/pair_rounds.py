"""Node 0's side of `isolate`: round after round of pairs, until it is clear which nodes, links or groups are bad."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, defaultdict
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
)
from ncclcheck.bench.pairs.round_limit import Finished
from ncclcheck.bench.pairs.silent_nodes import Calls, Lost, SilentNodes, Unanswered
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.isolation.conclusion import conclude
from ncclcheck.measure.isolation.doubling import RingTest, next_ring
from ncclcheck.measure.isolation.links import FAILED_TWICE
from ncclcheck.measure.isolation.next_round import Plan, Round
from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.model.benchmarks.isolation import NO_ANSWER, PairOutcome, Unheard
from ncclcheck.model.codec import encode
from ncclcheck.model.snapshot import ProbeOutcome
from ncclcheck.timeouts import PAIR_TRANSFER_S, ROUND_POLL_S

TWO_NODES = 2
MOST_PAUSES = 2  # of a node that are forgiven


class Rounds(Struct, frozen=True):
    """All tests, by tickets, and who was lost; `is_finished`: the planner had no more questions.

    `unheard`: who fell silent in a way that says nothing of them. `cut`: who lives, while the path between it and node
    0 does not carry its messages. `paused`: who stood still in rounds whose tests were dropped for that, for how long.
    `first`: the ticket of node 0, where it is a node. `blocked`: from whom to whom not even a call came through, each
    time after a test of two nodes that answer did not finish, twice or more.
    """

    tests: tuple[PairTest, ...]
    lost: tuple[Lost, ...]
    is_finished: bool
    rings: tuple[RingTest, ...] = ()
    unheard: tuple[Lost, ...] = ()
    cut: tuple[Lost, ...] = ()
    paused: dict[int, float] = {}
    first: int | None = None
    blocked: tuple[Pair, ...] = ()

    @property
    def missing(self) -> frozenset[int]:
        """Return the tickets of all that take part no more."""
        return frozenset(gone.ticket for gone in (*self.lost, *self.unheard, *self.cut))

    def unheard_hosts(self, host_of: Mapping[int, str], *, with_cut: bool = False) -> Unheard | None:
        """Return the hosts that fell silent so, for the result; `with_cut`: no link is named for those that are cut."""
        cut = [gone for gone in self.cut if with_cut or gone.path != "link"]
        if not self.unheard and cut:
            return Unheard(tuple(sorted(host_of[gone.ticket] for gone in cut)), "path")
        if not self.unheard:
            return None
        hosts = tuple(sorted(host_of[gone.ticket] for gone in (*self.unheard, *cut)))
        stood_still_s = round(max(gone.stood_still_s for gone in self.unheard), 1)
        if stood_still_s:
            return Unheard(hosts, "stood_still", stood_still_s)
        return Unheard(hosts, "two_nodes" if len(host_of) == TWO_NODES else "most")


def rounds_of(nodes: int, tests: Sequence[PairTest], lost: Sequence[Lost], *, is_finished: bool) -> Rounds:
    """Return the rounds, with the silent nodes set apart whose silence says nothing of them.

    That is where node 0 itself stood still meanwhile, or where most of the other nodes (of two nodes: the other one)
    fell silent in one round, which points as well to node 0 or its path; so does who falls silent after that.
    """
    silent = Counter(gone.round for gone in lost if gone.is_silent)
    alone_from = min((number for number, count in silent.items() if 2 * count > nodes - 1), default=math.inf)
    lost_for_good, unheard, cut = list[Lost](), list[Lost](), list[Lost]()
    for gone in lost:
        if gone.is_silent and (gone.stood_still_s > 0 or gone.round >= alone_from):
            unheard.append(gone)
        else:
            (lost_for_good if gone.path is None else cut).append(gone)
    return Rounds(tuple(tests), tuple(lost_for_good), is_finished, unheard=tuple(unheard), cut=tuple(cut))


class _Course:
    """What the rounds brought so far. State: the tests, who was lost, who is silent, and who stood still how often."""

    def __init__(self, lead: RoundContext, tickets: Sequence[int]) -> None:
        self._lead, self._tickets = lead, tickets
        self.tests: list[PairTest] = []
        self.lost: list[Lost] = []
        self.silent = SilentNodes(lead)
        self._planned: dict[int, int] = {}  # by the number of the order, that of the planner
        self._pauses: dict[int, list[float]] = {}
        self._unfinished: list[Pair] = []  # of the last round: both ends answer, and are to call each other
        self._calls: defaultdict[Pair, list[ProbeOutcome]] = defaultdict(list)  # from the first to the second

    @property
    def members(self) -> list[int]:
        """Return who takes part in the next round."""
        absent = {gone.ticket for gone in self.lost} | self.silent.tickets
        return [ticket for ticket in self._tickets if ticket not in absent]

    def known(self, *, is_finished: bool, with_silent: bool = False) -> Rounds:
        """Return what is known."""
        lost = [*self.lost, *(self.silent.all_lost() if with_silent else ())]
        paused = {ticket: round(sum(pauses), 1) for ticket, pauses in self._pauses.items()}
        found = rounds_of(len(self._tickets), self.tests, lost, is_finished=is_finished)
        blocked = [
            pair
            for pair, outcomes in self._calls.items()
            if len(outcomes) >= FAILED_TWICE and "ok" not in outcomes
        ]
        return replace(found, paused=paused, first=self._lead.first, blocked=tuple(blocked))

    def calls(self) -> Calls:
        """Return who calls whom next."""
        members = self.members
        ends = {end for pair in self._unfinished for end in pair}
        return self.silent.calls(members).and_each_other(self._lead, ends.intersection(members))

    def take(self, number: int, answers: Mapping[int, PairAnswer]) -> set[int]:
        """Take answers to the order of that number; return whose tests of that round say nothing.

        A node is forgiven a few pauses, and what seems to have failed in them. One that stands still in more rounds is
        judged as it is.
        """
        spoilt = set()
        for ticket, answer in answers.items():
            pauses = self._pauses.get(ticket, [])
            if answer.stood_still_s > 0 and number > 0 and len(pauses) < MOST_PAUSES:
                self._pauses[ticket] = [*pauses, answer.stood_still_s]
                spoilt.add(ticket)
            elif answer.no_store and ticket != self._lead.first:
                detail = f"it does not reach the store of node 0 ({answer.no_store})"
                self.lost.append(Lost(ticket, "unreachable", number, detail, path="link"))
                spoilt.add(ticket)
            elif answer.outcome != "ok" and answer.own:
                self.lost.append(Lost(ticket, answer.outcome, number, answer.detail))
        return spoilt

    def add(self, number: int, planned: Round, answers: Answers) -> None:
        """Take the answers to a round, and its tests but for those that say nothing."""
        for first, second in self._unfinished:
            for caller, called in ((first, second), (second, first)):
                if caller in answers and str(called) in answers[caller].reached:
                    self._calls[caller, called].append(answers[caller].reached[str(called)])
        busy = {end for pair in planned.pairs for end in pair}
        spoilt = self.take(number, {ticket: answer for ticket, answer in answers.items() if ticket in busy})
        self._planned[number] = planned.number
        tests = [_test(planned, pair, answers) for pair in planned.pairs if spoilt.isdisjoint(pair)]
        self.tests += tests
        self._unfinished = [
            test.pair for test in tests if test.outcome != "ok" and answers.keys() >= set(test.pair)
        ]

    def hear(self) -> None:
        """Take what those say that were silent: they take part again. A test of one that is cut off says nothing."""
        heard, lost = self.silent.look()
        self.lost += lost
        spoilt = [(gone.round, gone.ticket) for gone in lost if gone.path is not None]
        for entry, answer in heard:
            spoilt += [(entry.round, ticket) for ticket in self.take(entry.round, {entry.ticket: answer})]
        for number, ticket in spoilt:
            planned = self._planned.get(number)
            self.tests = [test for test in self.tests if test.round != planned or ticket not in test.pair]


def lead_rounds(
    lead: RoundContext, tickets: Sequence[int], plan: Plan, keep: Callable[[Rounds], None]
) -> Rounds:
    """Let the nodes start, then lead them through the rounds; `keep` gets what is known after each.

    Once node 0 has lost its own store, who does not answer is nobody's fault: what was known before is returned.
    """
    course = _Course(lead, tickets)
    lead.say("starting what measures on every node")
    finished: list[Finished] = []
    answers = gather_start(lead, tickets)
    if lead.store.lost is None:
        stood_still_s = lead.stood_still_s()
        course.lost += [
            Lost(ticket, "hang", 0, NO_ANSWER, stood_still_s) for ticket in tickets if ticket not in answers
        ]
        course.take(0, answers)
    for number in itertools.count(1):
        known = course.known(is_finished=False)
        members = course.members
        planned, calls = plan.following(members, course.tests), course.calls()
        while not planned.pairs and not calls.called and course.silent.tickets:
            course.hear()  # there is no further round that could run meanwhile
            if lead.deadline.passed or lead.store.lost is not None:
                break
            members = course.members
            planned = plan.following(members, course.tests)
            time.sleep(ROUND_POLL_S)
        if lead.store.lost is not None:
            return known
        if not (planned.pairs or calls.called) or lead.deadline.passed:
            known = course.known(is_finished=not planned.pairs, with_silent=True)
            return _lead_rings(lead, members, plan, known, number)
        if planned.pairs:
            lead.say(f"round {planned.number}: {len(planned.pairs)} pairs ({planned.why})")
        began_s, stood_still_s = lead.ran_s(), lead.stood_still_s()
        course.silent.note(calls)
        answers = gather_round(lead, calls.of_order(_order(number, planned)), members, finished)
        if lead.store.lost is not None:
            return known
        course.silent.take_calls(answers)
        course.hear()
        course.add(number, planned, answers)
        over_s, unanswered = lead.ran_s(), [ticket for ticket in members if ticket not in answers]
        course.silent.add(
            [Unanswered(ticket, number, began_s, over_s, stood_still_s) for ticket in unanswered]
        )
        keep(course.known(is_finished=False, with_silent=True))
    raise AssertionError  # the numbers do not end


def _order(number: int, planned: Round) -> PairsRound:
    return PairsRound(
        SCHEMA,
        TOOL_VERSION,
        number,
        planned.pairs,
        transfers=planned.transfers,
        at_once=planned.at_once,
        round_trips=planned.round_trips,
        rail_shift=planned.rail_shift,
        together=planned.together,
    )


def _lead_rings(
    lead: RoundContext, members: Sequence[int], plan: Plan, rounds: Rounds, number: int
) -> Rounds:
    """Lead rings of doubling size, if the plan wants them and nobody is bad in pairs; then end the rounds."""
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
