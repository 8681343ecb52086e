"""Which pairs are tested next: rounds of disjoint pairs until it is clear which members are bad.

Half as many pairs as nodes cost one round, so few rounds suffice at any number of nodes: the first round leaves at most
two suspects per bad node, the second meets each with a sound partner of its own, and every further one only buys
certainty. docs/isolate.md describes the method for users.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.isolation.common_paths import is_split, two_sides
from ncclcheck.measure.isolation.evidence import CLEARED, SHARE_OF_COUNTS, Standing, standing_of, threshold
from ncclcheck.measure.isolation.intermittent import LEAST_SUSPECT, Intermittent, intermittent_members
from ncclcheck.measure.isolation.links import bad_pairs, open_links, serious_links
from ncclcheck.measure.isolation.pair_tests import (
    FEW_TRANSFERS,
    Pair,
    PairTest,
    Scale,
    transfers_for,
)
from ncclcheck.measure.isolation.two_members import MOST_TESTS, two_members

MANY = 0.25  # of the nodes are suspect
FEW_TO_FILL = 256  # nodes: of so few all take part in each round
FEW_ROUNDS, FEW_BAD = 5, 16  # so many rounds are enough for so many bad members
SURER = 10  # times surer than a name has to be: aimed at as long as the first rounds last
MEETINGS = 2  # of each named member with others: more tell whether they are one group
PARTNERS = ((16, 3), (8, 2), (0, 1))  # of a named member: so many, if there are so many members
LEAST_NAMED_GROUP = 3  # so many named members may be one group behind a common path
SCREEN_SPREADS, MOST_SCREENS = 5.0, 5
FAR_FASTER = 1.25  # times the reference: no spread of sound pairs explains that
PAIR = 2  # members: only a direction can be named
FEW = 4  # nodes: all pairs are tested, since most of them may have the same bad end


class Plan(Struct, frozen=True):
    """How the rounds are made: the seed of the pairs, the least loss that counts, rounds at most, and the first ones.

    The first `screen` rounds test all members; the others only where something is open. `rings`: if no pair is bad,
    rings of doubling size follow.
    """

    seed: int
    effect: float = 0.1
    most_rounds: int = 9
    screen: int = 1
    rings: bool = False

    def following(self, members: Sequence[int], tests: Sequence[PairTest]) -> Round:
        """Return the next round of this plan; a plan of another command has its own."""
        return next_round(self, members, tests)


class Round(Struct, frozen=True):
    """Pairs to be tested at the same time; none: all is decided. `why` says it to the user.

    A rate is the middle mean of so many `transfers`. `at_once`: both directions at the same time. `round_trips`: so
    many small messages go there and back first. `rail_shift`: GPU i meets GPU i + rail_shift. `together`: all pairs
    begin each direction at the same time, since they share trunks.
    """

    number: int
    pairs: tuple[Pair, ...]
    why: str
    transfers: int = FEW_TRANSFERS
    at_once: bool = False
    round_trips: int = 0
    rail_shift: int = 0
    together: bool = False


def next_round(plan: Plan, members: Sequence[int], tests: Sequence[PairTest]) -> Round:
    """Return the next round for these members (those that still answer), after these tests. Without pairs: the end.

    Where the rates vary, its tests are longer.
    """
    planned = _next_round(plan, members, tests)
    return (
        replace(planned, transfers=transfers_for(plan.effect, len(members), tests))
        if planned.pairs
        else planned
    )


def _next_round(plan: Plan, members: Sequence[int], tests: Sequence[PairTest]) -> Round:
    number = max((test.round for test in tests), default=0) + 1
    if len(members) < PAIR or number > plan.most_rounds:
        return Round(number, (), "")
    draw = random.Random(f"{plan.seed} {number}")  # noqa: S311 (the pairs are no secret)
    order = draw.sample(list(members), len(members))
    tested = {test.pair for test in tests}
    few = len(members) <= FEW and len(tested) < len(members) * (len(members) - 1) // 2
    if number <= plan.screen or few:
        first = _unmet(order, tested) if few else ()
        rest = _paired([member for member in order if member not in first], tested)
        return Round(number, ((first, *rest) if first else rest), "all nodes, in random pairs")
    present = frozenset(members)
    tests = [test for test in tests if test.first in present and test.second in present]
    if len(members) == PAIR:
        is_open = not two_members(members, tests, plan.effect).is_decided and len(tests) < MOST_TESTS
        return Round(number, ((order[0], order[1]),) if is_open else (), "both directions of the pair again")
    standing = standing_of(members, tests, plan.effect)
    named = named_of(members, standing)
    bad_once = intermittent_members(tests, standing, named)
    at_times = _intermittent(number, bad_once)
    if number > FEW_ROUNDS and not at_times and _is_enough(tests, standing):
        return Round(number, (), "")
    if is_split(tests, standing):
        return _parting(number, order, tests, standing)
    if again := _why_all_again(number, tests, standing):
        return Round(number, _paired(order, tested), again)
    links = open_links(bad_pairs(tests, standing))
    is_last = number == FEW_ROUNDS  # then whether they are bad again matters more
    doubtful = [
        end for entry in links if entry.bad > 1 and entry.needs_others and not is_last for end in entry.pair
    ]
    among = _among(named, order, tests, standing) if len(named) >= PAIR else []
    busy = {member for pair in among for member in pair}
    unsure = (
        [member for member in unsure_of(named, standing) if member not in busy]
        if number <= FEW_ROUNDS
        else []
    )
    suspects = list(
        dict.fromkeys(
            [*suspects_of(members, standing), *at_times, *_unexplained(tests, standing), *unsure, *doubtful]
        )
    )
    pairs = [*_with_sound(suspects, order, standing, tested)]
    why = "suspects, each with another good node"
    pairs += among
    if among and not suspects:
        why = "the named nodes among each other"
    pairs += _disjoint(
        [entry.pair for entry in links if not {*doubtful, *at_times}.intersection(entry.pair)], pairs
    )
    is_filled = len(members) <= FEW_TO_FILL or len(suspects) + len(named) >= MANY * len(members)
    is_few = len(members) <= FEW_TO_FILL and number <= FEW_ROUNDS
    if number == plan.screen + 1 or (pairs and is_filled) or (bad_once and is_few):
        pairs += _others(order, pairs, tested)
    return Round(number, tuple(pairs), why if suspects or named else "all nodes, once more")


def _why_all_again(number: int, tests: Sequence[PairTest], standing: Standing) -> str:
    """Return why all nodes are tested once more before suspects are chosen; an empty text if they are not."""
    informative_rounds = {test.round for test in standing.informative(tests)}
    if number > MOST_SCREENS:
        return ""
    if len(informative_rounds) < screens_for(standing.scale, standing.effect):
        return "all nodes again, since the rates vary"
    is_fast = _has_fast_ones(tests, standing.scale)
    return "all nodes again, since few pairs are far faster than the rest" if is_fast else ""


def _others(order: Sequence[int], pairs: Sequence[Pair], tested: set[Pair]) -> tuple[Pair, ...]:
    """Return pairs of all who are in none of these.

    So it is known how often a test between sound nodes is disturbed, and who is bad at times; and a path that many
    nodes share is as loaded as in the rounds before.
    """
    busy = {member for pair in pairs for member in pair}
    return _paired([member for member in order if member not in busy], tested)


def _intermittent(number: int, found: Sequence[Intermittent]) -> list[int]:
    """Return the members that may be bad at times; after the first rounds only those that chance hardly explains."""
    return [
        entry.member
        for entry in found
        if (entry.is_open if number > FEW_ROUNDS else entry.bad >= LEAST_SUSPECT and not entry.is_named)
    ]


def _is_enough(tests: Sequence[PairTest], standing: Standing) -> bool:
    """Return whether so few members are suspect that the first rounds are enough: what is open then stays open."""
    likely = [
        member
        for member, evidence in standing.evidence.items()
        if evidence >= threshold(len(standing.evidence)) / 2
    ]
    against = sum(evidence > 0 for evidence in standing.evidence.values())
    named = len(named_of(standing.evidence, standing))
    if against - named >= MANY * len(standing.evidence) or (len(likely) > FEW_BAD and len(likely) > named):
        return False
    return not is_split(tests, standing) and not serious_links(bad_pairs(tests, standing), standing)


def screens_for(scale: Scale | None, effect: float) -> int:
    """Return how many tests of each node tell such an effect from the spread of the rates: more where they vary."""
    return 1 if scale is None else min(MOST_SCREENS, math.ceil((SCREEN_SPREADS * scale.spread / effect) ** 2))


def _has_fast_ones(tests: Sequence[PairTest], scale: Scale | None) -> bool:
    """Return whether a pair is far above the reference: then most pairs may be slow, and the reference with them."""
    return scale is not None and any(
        min(test.rates_gbit_s) > FAR_FASTER * scale.reference_gbit_s for test in tests if test.rates_gbit_s
    )


def _parting(number: int, order: Sequence[int], tests: Sequence[PairTest], standing: Standing) -> Round:
    """Return a round that shows which nodes are good together; at last one pair alone between the two groups."""
    sides = two_sides(order, tests, standing)
    if sides is None or (number < FEW_ROUNDS and sum(map(len, sides)) < len(order)):
        tested = {test.pair for test in tests}
        return Round(number, _paired(order, tested), "which nodes are good together")
    if any(test.lone for test in tests):
        return Round(number, (), "")
    return Round(number, ((sides[0][0], sides[1][0]),), "one pair alone between the two groups")


def named_of(members: Iterable[int], standing: Standing) -> list[int]:
    """Return the members that are bad, beyond doubt: with three partners or more, of few members with fewer.

    A sound node may meet two members of a group behind a slow path, by chance, or two that are bad at times.
    """
    members = list(members)
    least = next(partners for enough, partners in PARTNERS if len(members) >= enough)
    limit = threshold(len(members))

    def is_clear(member: int) -> bool:
        return standing.evidence[member] >= limit or _is_always_bad(member, standing, limit)

    return [
        member
        for member in members
        if standing.evidence[member] > 0
        and len(standing.against.get(member, ())) >= least
        and is_clear(member)
    ]


def _is_always_bad(member: int, standing: Standing, limit: float) -> bool:
    """Return whether each test of the member was bad, so often that chance would do so to few sound ones of all.

    The evidence allows for a bad node that passes some of its tests; one that passed none needs fewer.
    """
    if standing.own_good.get(member):
        return False
    return standing.chance_of(len(standing.own_bad.get(member, ()))) <= SHARE_OF_COUNTS * math.exp(-limit)


def unsure_of(named: Sequence[int], standing: Standing) -> list[int]:
    """Return those of the named members that one more sound partner makes surer, while there are rounds for it."""
    limit = threshold(len(standing.evidence)) + math.log(SURER)
    return [member for member in named if standing.evidence[member] < limit]


def suspects_of(members: Sequence[int], standing: Standing) -> list[int]:
    """Return the members of which more has to be known, the most suspect first; untested ones are among them."""
    named = frozenset(named_of(members, standing))
    open_ = [member for member in members if standing.evidence[member] > CLEARED and member not in named]
    return sorted(open_, key=lambda member: -standing.evidence[member])


def _unexplained(tests: Sequence[PairTest], standing: Standing) -> list[int]:
    """Return the cleared ends of bad tests that neither end explains, where the other end is a suspect.

    A short good test may have cleared one that is bad; where both are cleared, they meet once more.
    """
    found = []
    for test, ratio in zip(tests, standing.ratios, strict=True):
        low, high = sorted(test.pair, key=lambda end: standing.evidence[end])
        if ratio > 0 and standing.evidence[low] <= CLEARED < standing.evidence[high] <= 0:
            found.append(low)
    return found


def _paired(order: Sequence[int], tested: set[Pair]) -> tuple[Pair, ...]:
    """Return disjoint pairs of neighbours in this order, new ones where there are any."""
    left, pairs = list(order), []
    while len(left) > 1:
        first = left.pop()
        place = next(
            (
                at
                for at in range(len(left) - 1, max(-1, len(left) - 9), -1)
                if _pair(first, left[at]) not in tested
            ),
            len(left) - 1,
        )
        pairs.append((first, left.pop(place)))
    return tuple(pairs)


def _unmet(order: Sequence[int], tested: set[Pair]) -> Pair | tuple[()]:
    """Return two members that were not tested together."""
    pairs = ((first, second) for at, first in enumerate(order) for second in order[at + 1 :])
    return next((pair for pair in pairs if _pair(*pair) not in tested), ())


def _with_sound(
    suspects: Sequence[int], order: Sequence[int], standing: Standing, tested: set[Pair]
) -> list[Pair]:
    """Return each suspect with a sound partner of its own, one that it did not meet yet where there is one."""
    excluded = frozenset(suspects)
    sound = [member for member in order if standing.evidence[member] <= CLEARED and member not in excluded]
    # A slow test says less about a partner that slow tests speak against, or that has few good ones.
    sound.sort(
        key=lambda member: (
            len(standing.against.get(member, ())),
            -len(standing.own_good.get(member, ())),
        )
    )
    if not sound and suspects:  # all are suspects, as with three nodes
        return [*_paired([member for member in order if member in excluded], tested)]
    pairs = []
    for suspect in suspects:
        if not sound:
            break
        place = next((at for at, member in enumerate(sound[:64]) if _pair(suspect, member) not in tested), 0)
        pairs.append((suspect, sound.pop(place)))
    return pairs


def _among(
    named: Sequence[int], order: Sequence[int], tests: Sequence[PairTest], standing: Standing
) -> list[Pair]:
    """Return pairs of named members: each meets two others, unless the first meeting was bad, as of two bad nodes."""
    inside = frozenset(named)
    among = [
        (test, ratio)
        for test, ratio in zip(tests, standing.ratios, strict=True)
        if inside.issuperset(test.pair)
    ]
    times = Counter(end for test, _ in among for end in test.pair)
    done = {end for test, ratio in among if ratio > 0 for end in test.pair}
    unsettled = inside - done
    open_ = [member for member in order if member in unsettled and times[member] < MEETINGS]
    return list(_paired(open_, {test.pair for test, _ in among}))


def _disjoint(links: Sequence[Pair], taken: Sequence[Pair]) -> list[Pair]:
    busy = {member for pair in taken for member in pair}
    pairs = []
    for pair in links:
        if busy.isdisjoint(pair):
            pairs.append(pair)
            busy.update(pair)
    return pairs


def _pair(first: int, second: int) -> Pair:
    return (min(first, second), max(first, second))
