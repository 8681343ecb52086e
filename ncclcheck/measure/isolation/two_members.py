"""Two members: without a third one only the slow direction can be named, not the bad member."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, median, stdev

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import PairTest

LEAST_SOUND, MOST_TESTS = 2, 5
LEAST_SPREAD = 0.01  # of the differences between both directions
SIGNIFICANT = {3: 22.3, 4: 10.2, 5: 7.17, 6: 5.89}  # Student's t of so many tests: chance gives more in 0.2 %
LEAST_TESTS = min(SIGNIFICANT)


class TwoMembers(Struct, frozen=True):
    """What the tests of two members say: `slow` paths (from, to, whether nothing got through), or no answer yet."""

    slow: tuple[tuple[int, int, bool], ...] = ()
    is_decided: bool = False


def two_members(members: Sequence[int], tests: Sequence[PairTest], effect: float) -> TwoMembers:
    """Return which direction between the two is slow: the median of several tests, beyond what chance explains."""
    first, second = members
    if len(tests) < LEAST_SOUND:
        return TwoMembers()
    failed = sum(test.rates_gbit_s is None for test in tests)
    if failed:
        blocked = ((first, second, True), (second, first, True))
        is_clear = failed == len(tests) and failed >= LEAST_TESTS
        return TwoMembers(blocked, is_decided=True) if is_clear else TwoMembers()
    ahead = [_ahead(test, first) for test in tests]
    usual, limit = median(ahead), -math.log(1 - effect / 2)
    if abs(usual) < limit:
        return TwoMembers(is_decided=all(abs(part) < limit for part in ahead) or len(tests) >= MOST_TESTS)
    spread = max(LEAST_SPREAD, stdev(ahead))
    if len(tests) < LEAST_TESTS:
        return TwoMembers()
    if abs(mean(ahead)) * math.sqrt(len(tests)) / spread < SIGNIFICANT[min(len(tests), MOST_TESTS)]:
        return TwoMembers()
    slow = (second, first, False) if usual > 0 else (first, second, False)
    return TwoMembers((slow,), is_decided=True)


def _ahead(test: PairTest, member: int) -> float:
    """Return by how much `member` sends faster than it receives, as a natural logarithm."""
    sends, receives = test.rates_of(member)
    return math.log(max(sends or 0.0, 1e-12) / max(receives or 0.0, 1e-12))
