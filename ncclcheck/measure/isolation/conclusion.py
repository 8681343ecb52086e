"""What all rounds together say: which members, links or groups are bad, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.isolation.common_paths import SIDE, components, good_among_bad, is_split, two_sides
from ncclcheck.measure.isolation.evidence import CLEARED, Standing, standing_of
from ncclcheck.measure.isolation.intermittent import intermittent_members
from ncclcheck.measure.isolation.links import BadPair, bad_pairs, serious_links
from ncclcheck.measure.isolation.next_round import PAIR, Plan, named_of, suspects_of
from ncclcheck.measure.isolation.pair_tests import Pair, PairTest, Scale
from ncclcheck.measure.isolation.two_members import two_members
from ncclcheck.model.benchmarks.isolation import Direction, NodeVerdict

MOSTLY = 0.8


class Named(Struct, frozen=True):
    """A member that the tests name. `sends`, `receives`: medians as a part of the reference, None: not finished."""

    member: int
    verdict: NodeVerdict
    direction: Direction | None
    tests: int
    chance: float
    sends: float | None = None
    receives: float | None = None


class Conclusion(Struct, frozen=True):
    """The bad parts: members, links (from, to, whether nothing got through) and groups (whether also when alone)."""

    named: tuple[Named, ...]
    links: tuple[tuple[int, int, bool], ...]
    groups: tuple[tuple[tuple[int, ...], bool], ...]
    undecided: tuple[int, ...]
    scale: Scale | None
    disturbed: float

    @property
    def is_bad(self) -> bool:
        """Return whether a member, link or group is bad."""
        return bool(self.named or self.links or self.groups)

    @property
    def chance(self) -> float:
        """The expected number of sound members among those named."""
        return sum(named.chance for named in self.named)


def conclude(plan: Plan, members: Sequence[int], tests: Sequence[PairTest]) -> Conclusion:
    """Return what these tests of the members say."""
    standing = standing_of(members, tests, plan.effect)
    if len(members) == PAIR:
        both = two_members(members, tests, plan.effect)
        undecided = () if both.is_decided else tuple(members)
        return Conclusion((), both.slow, (), undecided, standing.scale, standing.disturbed)
    sides = two_sides(members, tests, standing) if is_split(tests, standing) else None
    if sides is not None:
        group = (sides[1], _is_slow_alone(sides[1], tests, standing))
        return Conclusion((), (), (group,), (), standing.scale, standing.disturbed)
    named = named_of(members, standing)
    groups = [(tuple(sorted(side)), True) for side in _sound_together(named, tests, standing)]
    grouped = {member for side, _ in groups for member in side}
    of: defaultdict[int, list[PairTest]] = defaultdict(list)
    for test in tests:
        of[test.first].append(test)
        of[test.second].append(test)
    doubtful = good_among_bad(tests, standing) - grouped
    found = [
        _named(member, of[member], standing)
        for member in named
        if member not in grouped and member not in doubtful
    ]
    flaky = intermittent_members(tests, standing, named)
    found += [
        replace(_named(entry.member, of[entry.member], standing, "intermittent"), chance=entry.by_chance)
        for entry in flaky
        if entry.is_named
    ]
    settled = grouped | {entry.member for entry in found}
    perhaps = {entry.member for entry in flaky if entry.is_open}
    paths = [entry for entry in bad_pairs(tests, standing) if (settled | perhaps).isdisjoint(entry.pair)]
    doubtful.update(end for entry in serious_links(paths, standing) for end in entry.pair)
    return Conclusion(
        tuple(sorted(found, key=lambda entry: entry.member)),
        tuple(_links(tests, standing, [entry for entry in paths if entry.is_link])),
        tuple(groups),
        tuple(
            sorted(
                member
                for member in {*suspects_of(members, standing), *doubtful, *perhaps}
                if member not in settled
            )
        ),
        standing.scale,
        standing.disturbed,
    )


def _sound_together(named: Sequence[int], tests: Sequence[PairTest], standing: Standing) -> list[list[int]]:
    """Return the groups of named members that were good with each other, though bad with all others.

    One group, where nearly all tests among them were good; otherwise those that good tests connect.
    """
    inside = frozenset(named)
    among = [
        (test, ratio)
        for test, ratio in zip(tests, standing.ratios, strict=True)
        if inside.issuperset(test.pair)
    ]
    good = [test for test, ratio in among if ratio <= CLEARED]
    if len(good) >= MOSTLY * len(among):
        side = sorted({member for test in good for member in test.pair})
        return [side] if len(side) >= SIDE else []
    return [side for side in components(named, [test.pair for test in good]) if len(side) >= SIDE]


def _is_slow_alone(side: Sequence[int], tests: Sequence[PairTest], standing: Standing) -> bool:
    """Return whether the path out of a group is slow also when one pair uses it alone; assumed where nobody tried."""
    inside = frozenset(side)
    lone = [test for test in tests if test.lone and (test.first in inside) != (test.second in inside)]
    return not lone or any(standing.is_bad(test) for test in lone)


def _named(
    member: int, own_tests: Sequence[PairTest], standing: Standing, verdict: NodeVerdict | None = None
) -> Named:
    partners = frozenset(standing.own_bad.get(member, ())) | frozenset(standing.own_good.get(member, ()))
    counted = [test for test in own_tests if partners.intersection(test.pair) - {member}] or own_tests
    failed = Counter(test.outcome for test in counted if test.outcome != "ok")
    sends, receives = (_median_part(counted, member, direction, standing.scale) for direction in (0, 1))
    kind: NodeVerdict = verdict or "slow"
    if verdict is None and failed.total() * 2 > len(counted):
        kind = failed.most_common(1)[0][0]
    chance = min(1.0, math.exp(-standing.evidence[member]))
    return Named(
        member,
        kind,
        _direction(sends, receives, standing.scale) if kind in ("slow", "intermittent") else None,
        len(own_tests),
        chance,
        sends,
        receives,
    )


def _median_part(tests: Sequence[PairTest], member: int, direction: int, scale: Scale | None) -> float | None:
    rates = [rate for rate in (test.rates_of(member)[direction] for test in tests) if rate is not None]
    return median(rates) / scale.reference_gbit_s if rates and scale is not None else None


def _direction(sends: float | None, receives: float | None, scale: Scale | None) -> Direction | None:
    """Return which way is slow: the way below the cut, both where both or neither are."""
    if sends is None or receives is None or scale is None:
        return None
    slow = [math.log(max(part, 1e-12)) < scale.cut for part in (sends, receives)]
    if slow == [True, False]:
        return "send"
    return "receive" if slow == [False, True] else "both"


def _links(
    tests: Sequence[PairTest], standing: Standing, found: Sequence[BadPair]
) -> list[tuple[int, int, bool]]:
    """Return the paths that were bad in every one of several tests, though both ends are sound."""
    of: defaultdict[Pair, list[PairTest]] = defaultdict(list)
    for test in standing.informative(tests):
        of[test.pair].append(test)
    slow = []
    for entry in found:
        same = of[entry.pair]
        directions = (entry.pair, entry.pair[::-1])
        if all(test.outcome != "ok" for test in same):
            slow += [(source, target, True) for source, target in directions]
            continue
        for source, target in directions:
            part = _median_part(same, source, 0, standing.scale)
            if part is not None and standing.scale is not None and math.log(part) < standing.scale.cut:
                slow.append((source, target, False))
    return slow
