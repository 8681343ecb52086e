"""Members that are bad intermittently: in more of their tests than disturbances explain, and good in others.

The evidence takes a bad node to be bad in nearly all of its tests, so one good test outweighs several bad ones. An
intermittent fault is found by counting: how likely is it that disturbances, as frequent as those of all others, spoil
so many of its tests? The bad tests of such a member are no disturbances, and are no evidence against its partners.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.measure.isolation.evidence import FALSE_NAMES, SHARE_OF_COUNTS, Standing, share_disturbed
from ncclcheck.measure.isolation.pair_tests import Pair, PairTest

LEAST_SUSPECT, LEAST_CAUSE = (
    2,
    3,
)  # bad tests with different partners: one may be of the partner, or a disturbance
CAUSE = (
    FALSE_NAMES  # so few members as bad are expected by chance: then its bad tests speak against no partner
)
OPEN = 0.02  # the same, up to which more has to be known
MOST_CAUSES = 0.25  # of the members: more are no members that are bad at times, but a path that they share
MOST_FOUND = 16  # candidates at most; a bad node of thousands shows in the evidence
Rows: TypeAlias = Sequence[tuple[Pair, bool]]  # a test, and whether it was bad


class Intermittent(Struct, frozen=True):
    """A member that was bad in `bad` of `tests`; `by_chance` members as bad are expected of this run's disturbances.

    `at_least_by_chance`: the same, if the bad tests of all such members are none.
    """

    member: int
    bad: int
    tests: int
    by_chance: float
    at_least_by_chance: float

    @property
    def is_named(self) -> bool:
        """Return whether it is beyond doubt that it is bad, and at times only."""
        return self.bad < self.tests and self.by_chance <= SHARE_OF_COUNTS * FALSE_NAMES

    @property
    def is_open(self) -> bool:
        """Return whether disturbances hardly explain its bad tests, but more has to be known."""
        return self.bad >= LEAST_CAUSE and not self.is_named and self.at_least_by_chance <= OPEN


def intermittent_members(
    tests: Sequence[PairTest], standing: Standing, named: Collection[int]
) -> list[Intermittent]:
    """Return the members that were bad, but for those `named`, whose tests are left out; the most suspect first."""
    members = len(standing.evidence)
    known = frozenset(named)
    rows = [
        (test.pair, standing.is_bad(test))
        for test in standing.informative(tests)
        if known.isdisjoint(test.pair)
    ]
    causes = _causes(rows, standing)
    if len(causes) > MOST_CAUSES * members:
        return []
    between = [row for row in rows if causes.isdisjoint(row[0])]
    counts = _counts(rows, causes)
    suspects = {member for member, (bad, _) in counts.items() if bad >= LEAST_SUSPECT}
    least = _disturbed([row for row in rows if suspects.isdisjoint(row[0])])
    of_all = (sum(bad for _, bad in between), len(between))
    found = []
    for member, (bad, good) in counts.items():
        if bad:
            own_counts = (0, 0) if member in causes else (bad, bad + good)
            disturbed = share_disturbed(
                *(max(0, all_ - its) for all_, its in zip(of_all, own_counts, strict=True))
            )
            chances = (members * at_least(bad, bad + good, share) for share in (disturbed, least))
            found.append(Intermittent(member, bad, bad + good, *chances))
    return sorted(found, key=lambda entry: (entry.by_chance, entry.member))


def _disturbed(rows: Rows) -> float:
    return share_disturbed(sum(bad for _, bad in rows), len(rows))


def _causes(rows: Rows, standing: Standing) -> set[int]:
    """Return the members that are bad too often for chance, the worst first: what it explains counts for no other."""
    members = len(standing.evidence)
    causes = {member for member, evidence in standing.evidence.items() if evidence > 0}
    for _ in range(MOST_FOUND):
        rows = [row for row in rows if causes.isdisjoint(row[0])]
        counts = _counts(rows, ())
        suspects = {member for member, (bad, _) in counts.items() if bad >= LEAST_CAUSE}
        if not suspects:
            break
        disturbed = _disturbed([row for row in rows if suspects.isdisjoint(row[0])])
        chances = {member: at_least(counts[member][0], sum(counts[member]), disturbed) for member in suspects}
        worst = min(suspects, key=lambda member: chances[member])
        if members * chances[worst] > CAUSE:
            break
        causes.add(worst)
    return causes


def _counts(rows: Rows, causes: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return how many tests of each member with a bad one were bad and good, of those with partners that are no causes.

    The bad tests of a pair count once: the partner may be the one that is bad at times, or the path may be bad.
    """
    bad_ends = {end for pair, bad in rows if bad for end in pair}
    of: defaultdict[Pair, Counter[bool]] = defaultdict(Counter)
    for pair, bad in rows:
        if bad or not bad_ends.isdisjoint(pair):
            of[pair][bad] += 1
    found: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for pair, times in of.items():
        for member, partner in (pair, pair[::-1]):
            if partner not in causes:
                found[member][0] += min(1, times[True])
                found[member][1] += times[False]
    return {member: (bad, good) for member, (bad, good) in found.items()}


def at_least(successes: int, trials: int, chance: float) -> float:
    """Return the chance of so many successes or more (binomial)."""
    return sum(
        math.comb(trials, times) * chance**times * (1 - chance) ** (trials - times)
        for times in range(successes, trials + 1)
    )
