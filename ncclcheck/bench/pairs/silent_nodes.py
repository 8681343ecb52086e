"""Nodes that have not answered when a round was over: they are waited for, called by the others, and at last lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.pairs.pair_orders import MOST_CALLED, PairAnswer, PairsRound
from ncclcheck.bench.pairs.round_answers import Answers, RoundContext, late_answers
from ncclcheck.exchange.probe.reachability import Peer
from ncclcheck.model.benchmarks.isolation import NO_ANSWER, PairOutcome
from ncclcheck.model.snapshot import ProbeOutcome
from ncclcheck.timeouts import NODE_PAUSE_S, ROUND_ENDS_S

CALLERS = 3  # of a silent node, beside node 0: one that it answers is enough
# Which path is the cause, if the node is not: the one between it and node 0, or an unknown part of it
CutPath: TypeAlias = Literal["link", "elsewhere"]


class Lost(Struct, frozen=True):
    """A node that answers no more, or whose own process failed: what became of it, and in which round (0: before).

    `stood_still_s`: for so long node 0 itself did not run since that round began. `calls`: what other nodes met that
    called it, by ticket. `path`: the node lives, and this is why node 0 does not hear it.
    """

    ticket: int
    outcome: PairOutcome
    round: int
    detail: str
    stood_still_s: float = 0.0
    calls: tuple[tuple[int, ProbeOutcome], ...] = ()
    path: CutPath | None = None

    @property
    def is_silent(self) -> bool:
        """Return whether it was lost without a word of its own that tells why."""
        return self.detail == NO_ANSWER or self.path is not None


class Unanswered(Struct, frozen=True):
    """A node that had not answered when a round was over: when that began and was over, by the clock of the rounds.

    `stood_still_s`: for how long node 0 had stood still when the round began.
    """

    ticket: int
    round: int
    began_s: float
    over_s: float
    stood_still_s: float


class Calls(Struct, frozen=True):
    """Who calls whom in a round: each of the callers all that are called, but itself."""

    callers: tuple[int, ...]
    called: tuple[Peer, ...]

    def and_each_other(self, lead: RoundContext, ends: Collection[int]) -> Calls:
        """Return these calls, and those of some nodes that call each other."""
        further = [lead.peers[ticket] for ticket in sorted(ends) if ticket in lead.peers]
        called = tuple(dict.fromkeys((*self.called, *further)))[:MOST_CALLED]
        return Calls(tuple(dict.fromkeys((*self.callers, *sorted(ends)))), called) if further else self

    def of_order(self, order: PairsRound) -> PairsRound:
        """Return the order with these calls."""
        return replace(order, callers=self.callers, called=self.called) if self.called else order


class SilentNodes:
    """The nodes that are waited for. State: since when, and what came of the calls of others."""

    def __init__(self, lead: RoundContext) -> None:
        self._lead = lead
        self._entries: list[Unanswered] = []
        self._called: set[int] = set()
        self._calls: dict[int, dict[int, ProbeOutcome]] = {}

    @property
    def tickets(self) -> frozenset[int]:
        """Return who is waited for."""
        return frozenset(entry.ticket for entry in self._entries)

    def add(self, entries: Sequence[Unanswered]) -> None:
        """Wait for these, too."""
        for entry in entries:
            self._called.discard(entry.ticket)
            self._calls.pop(entry.ticket, None)
        self._entries += entries

    def calls(self, members: Collection[int]) -> Calls:
        """Return who of the members calls whom: those that nobody has called since they fell silent."""
        callers = [ticket for ticket in members if ticket != self._lead.own][:CALLERS]
        uncalled = (ticket for ticket in sorted(self.tickets - self._called) if ticket in self._lead.peers)
        called = [self._lead.peers[ticket] for ticket in uncalled] if callers else []
        leader = [ticket for ticket in members if ticket == self._lead.own]
        return Calls((*leader, *callers), tuple(called[:MOST_CALLED]))

    def note(self, calls: Calls) -> None:
        """Note that these calls are made now."""
        self._called.update(peer.ticket for peer in calls.called)

    def take_calls(self, answers: Answers) -> None:
        """Note what the callers say."""
        for caller, answer in answers.items():
            for ticket in self.tickets if answer.reached else ():
                if str(ticket) in answer.reached:
                    self._calls.setdefault(ticket, {})[caller] = answer.reached[str(ticket)]

    def look(self) -> tuple[list[tuple[Unanswered, PairAnswer]], list[Lost]]:
        """Return who has answered since, and who is lost: these are waited for no more."""
        heard: list[tuple[Unanswered, PairAnswer]] = []
        lost: list[Lost] = []
        for entry in tuple(self._entries):
            answers = late_answers(self._lead.store, entry.round, (entry.ticket,))
            if answers:
                heard.append((entry, answers[entry.ticket]))
            elif self._is_late(entry):
                lost.append(self._lost(entry))
            else:
                continue
            self._entries.remove(entry)
        return heard, lost

    def all_lost(self) -> list[Lost]:
        """Return all that are waited for as lost, as far as is known now."""
        return [self._lost(entry) for entry in self._entries]

    def _is_late(self, entry: Unanswered) -> bool:
        """Return whether nothing will come: a node may be paused, unless others have met something else."""
        calls = self._calls.get(entry.ticket, {})
        is_over = self._lead.ran_s() > entry.over_s + ROUND_ENDS_S
        if "ok" in calls.values() or "refused" in calls.values():
            return is_over
        return is_over and self._lead.ran_s() > entry.began_s + NODE_PAUSE_S

    def _lost(self, entry: Unanswered) -> Lost:
        stood_still_s = self._lead.stood_still_s() - entry.stood_still_s
        calls = self._calls.get(entry.ticket, {})
        found = Lost(
            entry.ticket, "hang", entry.round, NO_ANSWER, stood_still_s, tuple(sorted(calls.items()))
        )
        return replace(found, path=_path_of(calls, self._lead.own))


def _path_of(calls: Mapping[int, ProbeOutcome], leader: int | None) -> CutPath | None:
    """Return which path is the cause, where the node answers others: it lives."""
    if not any(outcome == "ok" for caller, outcome in calls.items() if caller != leader):
        return None
    return "link" if leader is not None and calls.get(leader, "ok") != "ok" else "elsewhere"
