"""How strongly the tests of pairs speak against each member: belief propagation over the graph of tested pairs.

A slow test speaks against both of its ends, unless the other end is known to be bad. So each end weighs a test with
what all *other* tests say about its partner (Pearl, Probabilistic Reasoning in Intelligent Systems, 4.3: messages
that leave out what they answer). A test between sound nodes may be disturbed by something that passes; how often is
learnt from the pairs that turned out sound, and no single test can say more than that rate allows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.isolation.pair_tests import (
    EXACT,
    FIRST_TRANSFERS,
    LEAST_SPREAD,
    PairTest,
    Scale,
    log_part,
    most_telling,
    noise_between,
    noise_within,
    scale_of,
)

BAD_SHOWS = 0.7  # of its tests a bad node spoils at least so many
LEAST_EVIDENCE = -7.0  # of a sound test: a bad node may pass one of a thousand
MOST_ODD = (
    0.1  # chance that a partner with one bad test among good ones is bad at times: then its tests count
)
CLEARED = -2.0  # evidence up to which a member counts as sound
LEAST_DISTURBED, FIRST_DISTURBED = 0.01, 0.02
PRIOR_TESTS = 10  # what was expected before the run counts as much as so many tests
MOST_DISTURBED = 0.6  # above it a slow test would speak for its ends
EXPECTED_BAD = 0.02  # share of bad nodes before the first test
FALSE_NAMES = 0.01  # the expected number of sound nodes that a run names
SHARE_OF_COUNTS = 0.3  # of them, for those that are named by how many of their tests were bad
# Spreads in the effect: with fewer of them a short test says nothing, once there are longer ones, is weak, says all
NOTHING, WEAK, ALL = 3.0, 4.0, 5.0
SHORTER = 2  # times as long
_PASSES = 6
LEAST_FITTED = 4  # tests between sound members
NEAR, FAR = (
    0.2,
    2.0,
)  # a scale that differs by less is the same; a reference that moves by more spreads, another
_FITS = 3
_STILL = 1e-3  # evidence that changes by less has converged
_ODDS_LIMIT = 30.0  # exp() of more says nothing more


class Standing(Struct, frozen=True):
    """What all tests say so far: by member its evidence (log-likelihood that it is bad against sound), over one scale.

    `own_bad`, `own_good`: the partners of its bad and good tests, where the partner is not bad itself, and bad tests
    only where it has none with other sound ones. `against`: those of tests that speak against it at all.
    `ratios`: by test, how strongly it says that an end of it is bad.
    `ever_suspect`: how many members had a test that speaks against its ends. `between`: how many
    tests between sound members were bad, of how many.
    """

    scale: Scale | None
    disturbed: float
    evidence: dict[int, float]
    own_bad: dict[int, tuple[int, ...]]
    own_good: dict[int, tuple[int, ...]]
    against: dict[int, frozenset[int]]
    ratios: tuple[float, ...]
    ever_suspect: int
    between: tuple[int, int]
    effect: float

    def is_bad(self, test: PairTest) -> bool:
        """Return whether the test is slow, or did not finish."""
        return is_bad(test, self.scale)

    def chance_of(self, times: int) -> float:
        """Return the chance that so many tests between sound members are all bad, as those of this run say."""
        return chance_of_all_bad(times, *self.between)

    def informative(self, tests: Sequence[PairTest]) -> list[PairTest]:
        """Return those of the tests that are long enough to say something."""
        return [test for test in tests if not is_weak(test, self.scale, self.effect)]


def chance_of_all_bad(times: int, bad: int, tests: int) -> float:
    """Return the chance that so many more tests are all bad, after `bad` of so many tests.

    How often a test is disturbed is itself only known from them: its distribution is that of Jeffreys' prior.
    """
    return math.prod((bad + 0.5 + at) / (tests + 1 + at) for at in range(times))


def threshold(members: int) -> float:
    """Return the evidence from which a member is named, so that few sound ones of so many are.

    All count, not only those with a bad test: that test is part of the evidence.
    """
    return math.log(max(1, members) / FALSE_NAMES)


def is_bad(test: PairTest, scale: Scale | None) -> bool:
    """Return whether the test is slow on this scale, or did not finish."""
    rates = test.rates_gbit_s
    if rates is None or scale is None:
        return rates is None
    lowest = min(rates)
    may_be = lowest < scale.reference_gbit_s * (1 - scale.least_loss)  # of thousands of tests few are near
    return may_be and lowest < scale.least_gbit_s(test.transfers)


def standing_of(members: Sequence[int], tests: Sequence[PairTest], effect: float) -> Standing:
    """Return what the tests say about the members. `effect`: the least loss that counts, as a part."""
    telling, transfers = most_telling(tests)
    within = noise_within(telling, transfers)
    floor = max(LEAST_SPREAD, within or 0.0)
    scale = scale_of(_rates(tests), effect, within or noise_between(telling, transfers), floor)
    if scale is not None:
        scale = replace(scale, transfers=transfers)
    disturbed, between = FIRST_DISTURBED, (0, 0)
    evidence = dict.fromkeys(members, 0.0)
    messages = [[0.0, 0.0] for _ in tests]  # what test t says about its first and its second end
    ratios: list[float] = []
    uncapped = [_ratio(test, scale, effect) for test in tests]
    for _ in range(_FITS):  # with the rate of disturbances, and the scale, that the pass before found
        most = math.log(BAD_SHOWS / disturbed)
        ratios = [min(most, ratio) for ratio in uncapped]
        _propagate(tests, ratios, evidence, messages)
        between = _between(tests, evidence, scale)
        disturbed = share_disturbed(*between)
        fitted = _fitted(scale, _sound(tests, evidence), effect, floor)
        if fitted is not scale:
            scale = fitted
            uncapped = [_ratio(test, scale, effect) for test in tests]
    weak = [is_weak(test, scale, effect) for test in tests]
    own_bad, own_good, against = _partners(
        [
            (test, ratio, is_bad(test, scale))
            for test, ratio, out in zip(tests, ratios, weak, strict=True)
            if not out
        ],
        evidence,
        disturbed,
    )
    return Standing(
        scale,
        disturbed,
        evidence,
        own_bad,
        own_good,
        against,
        tuple(ratios),
        len({end for test, ratio in zip(tests, ratios, strict=True) if ratio > 0 for end in test.pair}),
        between,
        effect,
    )


def _partners(
    rows: Sequence[tuple[PairTest, float, bool]], evidence: dict[int, float], disturbed: float
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]], dict[int, frozenset[int]]]:
    """Return by member the partners of its bad tests, of its good ones, and of those that speak against it.

    `rows`: a test, how strongly it says that an end of it is bad, and whether it is bad.
    """
    own_bad: defaultdict[int, list[int]] = defaultdict(list)
    own_good: defaultdict[int, list[int]] = defaultdict(list)
    against: defaultdict[int, set[int]] = defaultdict(set)
    blamed: defaultdict[int, set[int]] = defaultdict(set)
    passed: Counter[int] = Counter()
    for test, ratio, bad in rows:
        if not bad:
            passed.update(test.pair)
        if ratio > 0:
            blamed[test.first].add(test.second)
            blamed[test.second].add(test.first)

    def is_telling(partner: int, member: int) -> bool:
        """Return whether the partner is sound, and not bad with others who are: then the member is the cause.

        One of many tests may be disturbed.
        """
        thirds = [third for third in blamed[partner] if third != member and evidence[third] <= 0]
        return evidence[partner] <= 0 and _is_excused(len(thirds), passed[partner], disturbed)

    for test, ratio, bad in rows:
        for member, partner in ((test.first, test.second), (test.second, test.first)):
            if not bad:
                own_good[member].append(partner)
            elif is_telling(partner, member):
                own_bad[member].append(partner)
            if ratio > 0 and is_telling(partner, member):
                against[member].add(partner)
    return (
        {member: tuple(partners) for member, partners in own_bad.items()},
        {member: tuple(partners) for member, partners in own_good.items()},
        {member: frozenset(partners) for member, partners in against.items()},
    )


def _is_excused(bad: int, good: int, disturbed: float) -> bool:
    """Return whether so many bad tests of a partner with sound members, among so many good ones, are a disturbance."""
    return bad == 0 or (bad == 1 and chance_of_odd(good, disturbed) <= MOST_ODD)


def chance_of_odd(good: int, disturbed: float) -> float:
    """Return about how likely a member with one bad test among so many good ones is bad at times, not disturbed.

    A member that is bad at times is so in any share of its tests: one bad test of 1 + `good` then has the chance
    B(2, good + 1), the beta function. Either end of that test may be the one.
    """
    return EXPECTED_BAD / (2 * disturbed * (good + 1) * (good + 2))


def is_weak(test: PairTest, scale: Scale | None, effect: float) -> bool:
    """Return whether the rates vary too much for so short a test, where there are longer ones."""
    if scale is None or test.rates_gbit_s is None or not _is_short(test, scale):
        return False
    return WEAK * scale.spread_of(test.transfers) > effect and not _is_far_below(test, scale)


def _is_far_below(test: PairTest, scale: Scale) -> bool:
    """Return whether the test is so slow that no spread explains it, however short it is."""
    limit = 1 - scale.least_loss - EXACT * scale.spread_of(test.transfers)
    return test.rates_gbit_s is not None and min(test.rates_gbit_s) < limit * scale.reference_gbit_s


def _is_short(test: PairTest, scale: Scale) -> bool:
    """Return whether there are far longer tests; none are needed where those of the first round are the longest."""
    return scale.transfers > FIRST_TRANSFERS and SHORTER * test.transfers <= scale.transfers


def _sound(tests: Sequence[PairTest], evidence: Mapping[int, float]) -> list[PairTest]:
    """Return the finished tests between members that nothing speaks against."""
    return [
        test
        for test in tests
        if test.rates_gbit_s is not None and evidence[test.first] <= 0 and evidence[test.second] <= 0
    ]


def _fitted(scale: Scale | None, sound: Sequence[PairTest], effect: float, floor: float) -> Scale | None:
    """Return the scale of these tests between sound members; the same one where they agree."""
    telling = [test for test in sound if scale is not None and test.transfers >= scale.transfers]
    if scale is None or len(telling) < LEAST_FITTED:
        return scale
    rates = [rate for test in telling for rate in test.rates_gbit_s or ()]
    fitted = scale_of(rates, effect, None, floor) or scale
    moved = abs(fitted.reference_gbit_s / scale.reference_gbit_s - 1)
    agree = moved < NEAR * scale.spread and abs(fitted.spread / scale.spread - 1) < NEAR
    is_elsewhere = moved > FAR * scale.spread  # then it is bad members that look sound to each other
    return scale if agree or is_elsewhere else replace(fitted, transfers=scale.transfers)


def _rates(tests: Sequence[PairTest]) -> list[float]:
    """Return the rates of all pairs, both ways; of a repeated pair the medians, so that repeats shift nothing."""
    of: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for test in tests:
        if test.rates_gbit_s is not None:
            of[test.first, test.second].append(test.rates_gbit_s[0])
            of[test.second, test.first].append(test.rates_gbit_s[1])
    return [median(rates) for rates in of.values()]


def _ratio(test: PairTest, scale: Scale | None, effect: float) -> float:
    """Return the log-likelihood of the test if one end is bad, against both being sound and undisturbed.

    The rates of sound pairs are normal round the reference; a bad end takes away `effect` or more, of one way or of
    both. At least what a bad node may hide.
    """
    if test.rates_gbit_s is None or scale is None:
        return _ODDS_LIMIT
    lost = math.log(1 - effect)
    spread = scale.spread_of(test.transfers)
    weight = (
        min(1.0, max(0.0, (effect / spread - NOTHING) / (ALL - NOTHING)))
        if _is_short(test, scale) and not _is_far_below(test, scale)
        else 1.0
    )
    forth, back = (_one_way(log_part(rate, scale), lost, spread) for rate in test.rates_gbit_s)
    odds = math.log((math.exp(forth) + math.exp(back) + math.exp(forth + back)) / 3)
    return weight * max(LEAST_EVIDENCE, min(_ODDS_LIMIT, odds))


def _one_way(part: float, lost: float, spread: float) -> float:
    """Return the log-likelihood of one rate if an end is bad, against both being sound.

    A bad end takes away between `lost` and three times as much, all alike (in logarithms); more says no more.
    """
    part = min(0.0, max(part, 3 * lost))  # faster than usual is as good as usual
    width = -2 * lost
    within = _normal((lost - part) / spread) - _normal((3 * lost - part) / spread)
    bad = math.log(max(within / width, 1e-12))
    sound = -(part**2) / (2 * spread**2) - math.log(spread * math.sqrt(2 * math.pi))
    return max(-_ODDS_LIMIT, min(_ODDS_LIMIT, bad - sound))


def _normal(value: float) -> float:
    """Return the distribution function of the normal distribution."""
    return (1 + math.erf(value / math.sqrt(2))) / 2


def _propagate(
    tests: Sequence[PairTest],
    ratios: Sequence[float],
    evidence: dict[int, float],
    messages: list[list[float]],
) -> None:
    """Bring each member's evidence up to date: the sum of what its tests say, each with regard to its partner's others.

    Only tests of members whose evidence still changes are looked at again.
    """
    prior = math.log(EXPECTED_BAD / (1 - EXPECTED_BAD))
    exp, log1p = math.exp, math.log1p
    rows = [
        (test.first, test.second, ratio, exp(ratio) - 1, sent)
        for test, ratio, sent in zip(tests, ratios, messages, strict=True)
    ]
    for _ in range(_PASSES):
        before = evidence.copy()
        for first, second, ratio, boost, sent in rows:
            for end, partner in ((0, second), (1, first)):
                odds = prior + evidence[partner] - sent[1 - end]
                if odds > _ODDS_LIMIT:
                    odds = _ODDS_LIMIT
                elif odds < -_ODDS_LIMIT:
                    odds = -_ODDS_LIMIT
                now = ratio - log1p(boost / (1 + exp(-odds)))
                evidence[first if end == 0 else second] += now - sent[end]
                sent[end] = now
        moving = {member for member, value in evidence.items() if abs(value - before[member]) > _STILL}
        rows = [row for row in rows if row[0] in moving or row[1] in moving]
        if not rows:
            break


def share_disturbed(bad: int, tests: int) -> float:
    """Return which share of the tests between sound members is bad, as so many of so many say; few say little."""
    share = (bad + FIRST_DISTURBED * PRIOR_TESTS) / (tests + PRIOR_TESTS)
    return min(MOST_DISTURBED, max(LEAST_DISTURBED, share))


def _between(tests: Sequence[PairTest], evidence: dict[int, float], scale: Scale | None) -> tuple[int, int]:
    """Return how many tests between sound members were bad, of how many."""
    between = [test for test in tests if evidence[test.first] <= 0 and evidence[test.second] <= 0]
    return sum(is_bad(test, scale) for test in between), len(between)
