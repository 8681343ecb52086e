"""How much slower all nodes are at once across leaves than within them: the oversubscription of the trunks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.isolation.pair_tests import Pair, PairTest
from ncclcheck.measure.matrix.leaves import Leaves

REPEATS = 5  # of the matching across; the one within is repeated less often, since its rate varies less
WITHIN_REPEATS, FEW_WITHIN = 3, 2  # the first where nodes of no leaf take part, which it also judges
FEW_REPEATS = (
    3  # so many across are enough if the ends of the interval are as near to each other as NEAR says
)
NEAR = 1.06
STUDENT = {
    2: 12.71,
    3: 4.30,
    4: 3.18,
    5: 2.78,
    6: 2.57,
    7: 2.45,
    8: 2.36,
}  # 95 %, two sides, of so many values
MOST_STUDENT = 8
LEAST_SPREAD = 0.005  # of a repeat
ONE_WAY = 1.25  # times slower than the way back, with all of its interval: no oversubscription is like that
FITTING = 0.95  # of the pairs of a repeat have to be of its kind: a few others change the load little


class Bisection(Struct, frozen=True):
    """The mean rates of a pair within and across leaves, in 1e9 bit/s, all nodes at once, and their ratio.

    `low`, `high`: the 95 % interval of the ratio, over so many `repeats`. `slow_from`: the figures are of the direction
    from that one of two leaves to the other one, which is far slower than the way back; None: both are alike.
    """

    within_gbit_s: float
    across_gbit_s: float
    ratio: float
    low: float
    high: float
    repeats: int
    slow_from: int | None = None
    back_gbit_s: float | None = None

    @property
    def is_enough(self) -> bool:
        """Return whether further repeats would tell nothing that anybody could feel."""
        return self.repeats >= REPEATS or (self.repeats >= FEW_REPEATS and self.high <= NEAR * self.low)


def within(leaves: Leaves, repeat: int) -> tuple[Pair, ...]:
    """Return disjoint pairs of nodes of the same leaf, other ones in each repeat."""
    pairs: list[Pair] = []
    for group in leaves.groups:
        turn = repeat % len(group)
        turned = [*group[turn:], *group[:turn]]
        pairs += zip(turned[0::2], turned[1::2], strict=False)
    return tuple(pairs)


def with_apart(pairs: tuple[Pair, ...], apart: Sequence[int], repeat: int) -> tuple[Pair, ...]:
    """Return the pairs with those nodes as well that belong to no leaf, each with the first node of a pair.

    So it is seen whether they send slowly, receive slowly, or both. They are few: at most a quarter of the pairs gives
    a node away.
    """
    asked = apart[: max(1, len(pairs) // 4)] if pairs else ()
    start = repeat * len(asked) % max(1, len(pairs))
    turned = [*pairs[start:], *pairs[:start]]
    joined = [(member, pair[0]) for member, pair in zip(asked, turned, strict=False)]
    return (*turned[len(joined) :], *joined)


def across(leaves: Leaves, repeat: int) -> tuple[Pair, ...]:
    """Return disjoint pairs of nodes of different leaves: node i of the first half with node i of the second.

    The order is leaf by leaf, so whole leaves send at the same time, which loads their trunks most. In each repeat the
    second half is turned, by so much that a leaf meets several others in a few repeats. Pairs that would stay in a
    leaf, where it is larger than half of all, are left out.
    """
    order = [member for group in leaves.groups for member in group]
    half = len(order) // 2
    second = order[-half:] if half else []
    turn = repeat * max(1, half // FEW_REPEATS) % max(1, half)
    number_of = leaves.number_of()
    return tuple(
        (near, far)
        for near, far in zip(order[:half], [*second[turn:], *second[:turn]], strict=True)
        if leaves.is_flat or number_of[near] != number_of[far]
    )


def bisection_of(leaves: Leaves, tests: Sequence[PairTest], kinds: dict[int, str]) -> Bisection | None:
    """Return the ratio; None where a repeat of either kind is missing.

    `kinds`: what each round was for. A repeat counts if it fits these leaves: they may have changed since.
    """
    number_of = leaves.number_of()
    rounds: defaultdict[int, list[PairTest]] = defaultdict(list)
    for test in tests:
        is_in_leaves = test.first in number_of and test.second in number_of
        if is_in_leaves and kinds.get(test.round) in ("within", "across"):
            rounds[test.round].append(test)
    means: dict[str, list[float]] = {"within": [], "across": []}
    sent_by_leaf: dict[int, list[float]] = {
        0: [],
        1: [],
    }  # of two leaves: what leaf 0 sent, and what leaf 1 sent
    for number, round_tests in rounds.items():
        kind = kinds[number]
        fits = [
            test
            for test in round_tests
            if leaves.is_flat
            or (number_of.get(test.first) == number_of.get(test.second)) == (kind == "within")
        ]
        rates = [rate for test in fits for rate in test.rates_gbit_s or ()]
        if rates and len(fits) >= FITTING * len(round_tests):
            means[kind].append(mean(rates))
            if kind == "across" and len(leaves.groups) == len(sent_by_leaf):
                for leaf, sent in _sent(fits, number_of).items():
                    sent_by_leaf[leaf].append(mean(sent))
    if not means["within"] or len(means["across"]) < 2:  # noqa: PLR2004 (an interval takes two)
        return None
    return _one_way(means["within"], sent_by_leaf) or _ratio(means["within"], means["across"])


def _sent(tests: Sequence[PairTest], number_of: Mapping[int, int]) -> dict[int, list[float]]:
    """Return what the nodes of each leaf sent to the other leaf."""
    sent: defaultdict[int, list[float]] = defaultdict(list)
    for test in tests:
        if test.rates_gbit_s is not None:
            sent[number_of[test.first]].append(test.rates_gbit_s[0])
            sent[number_of[test.second]].append(test.rates_gbit_s[1])
    return sent


def _ratio(within_gbit_s: Sequence[float], across_gbit_s: Sequence[float]) -> Bisection:
    """Return the ratio with its interval: the repeats of both kinds vary, by the same where little is known of one."""
    usual = mean(within_gbit_s)
    logs, logs_within = (
        [math.log(usual / rate) for rate in rates] for rates in (across_gbit_s, within_gbit_s)
    )
    repeats, values = len(logs), len(logs) + len(logs_within)
    squares = sum((value - mean(part)) ** 2 for part in (logs, logs_within) for value in part)
    spread = math.hypot(math.sqrt(squares / (values - 2)), LEAST_SPREAD)
    error = STUDENT[min(values - 1, MOST_STUDENT)] * spread * math.sqrt(1 / repeats + 1 / len(logs_within))
    middle = mean(logs)
    low, ratio, high = (math.exp(value) for value in (middle - error, middle, middle + error))
    return Bisection(usual, mean(across_gbit_s), ratio, low, high, repeats)


def _one_way(within_gbit_s: Sequence[float], sent_by_leaf: Mapping[int, Sequence[float]]) -> Bisection | None:
    """Return the slower direction between two leaves, if its interval is far above the other's; else None."""
    if any(len(rates) < 2 for rates in sent_by_leaf.values()):  # noqa: PLR2004 (an interval takes two)
        return None
    found = {leaf: _ratio(within_gbit_s, rates) for leaf, rates in sent_by_leaf.items()}
    slow, fast = sorted(found, key=lambda leaf: -found[leaf].ratio)
    if found[slow].low < ONE_WAY * found[fast].high:
        return None
    return replace(found[slow], slow_from=slow, back_gbit_s=found[fast].across_gbit_s)
