"""From how many nodes on a sound set of pairs is slow: rings of 2, 4, 8 ... nodes, one after the other.

In a ring all nodes send and receive at the same time, and nothing else is measured meanwhile. A size is slow if
it is so in several rings of random nodes, while smaller ones in between are as fast as before.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.next_round import Plan
from ncclcheck.measure.isolation.pair_tests import CUT_SPREADS
from ncclcheck.model.benchmarks.isolation import PairOutcome

SLOW_RINGS = 3  # of a size, none of which reached what smaller ones reach
SMALLEST = 2


class RingTest(Struct, frozen=True):
    """What the slowest node of a ring received, in 1e9 bit/s; None where it did not finish, and `outcome` says why."""

    round: int
    members: tuple[int, ...]
    rate_gbit_s: float | None = None
    outcome: PairOutcome = "ok"


def ring_sizes(members: int) -> tuple[int, ...]:
    """Return 2, 4, 8 ... and at last all members."""
    sizes = [SMALLEST]
    while sizes[-1] * 2 < members:
        sizes.append(sizes[-1] * 2)
    return (*sizes, members) if members > SMALLEST else (SMALLEST,)


def next_ring(
    plan: Plan, members: Sequence[int], tests: Sequence[RingTest], spread: float
) -> tuple[int, ...]:
    """Return the members of the next ring, in order; none: all is decided. `spread`: of the pairs' rates, as a part."""
    size = _next_size(plan, len(members), tests, spread)
    if not size:
        return ()
    draw = random.Random(f"{plan.seed} ring {len(tests)}")  # noqa: S311 (the rings are no secret)
    return tuple(draw.sample(list(members), size))


def _next_size(plan: Plan, members: int, tests: Sequence[RingTest], spread: float) -> int:
    sizes = ring_sizes(members)
    for smaller, size in zip((0, *sizes), sizes, strict=False):
        tests_of_size = [test for test in tests if len(test.members) == size]
        if not tests_of_size:
            return size
        if not smaller and all(test.rate_gbit_s is None for test in tests_of_size):
            return size if len(tests_of_size) < SLOW_RINGS else 0
        if smaller and _is_slow(tests_of_size, _of_size(smaller, tests), least_loss(plan, spread)):
            if len(tests_of_size) == SLOW_RINGS:
                return 0
            return smaller if len(tests[-1].members) == size else size
    return 0


def only_from(plan: Plan, members: int, tests: Sequence[RingTest], spread: float) -> int | None:
    """Return the least number of nodes from which on they are slow; None where no size is, or it is not clear."""
    sizes = ring_sizes(members)
    for smaller, size in pairwise(sizes):
        tests_of_size = [test for test in tests if len(test.members) == size]
        if len(tests_of_size) >= SLOW_RINGS and _is_slow(
            tests_of_size, _of_size(smaller, tests), least_loss(plan, spread)
        ):
            return size
    return None


def least_loss(plan: Plan, spread: float) -> float:
    """Return the least loss of a ring that counts, as a part: the slowest of many nodes varies more than one pair."""
    return min(0.9, max(plan.effect, CUT_SPREADS * spread))


def _of_size(size: int, tests: Sequence[RingTest]) -> list[RingTest]:
    return [test for test in tests if len(test.members) == size]


def _is_slow(tests_of_size: Sequence[RingTest], smaller: Sequence[RingTest], loss: float) -> bool:
    """Return whether the best of these rings is slower than usual for the smaller ones."""
    usual = [test.rate_gbit_s for test in smaller if test.rate_gbit_s is not None]
    best = max((test.rate_gbit_s for test in tests_of_size if test.rate_gbit_s is not None), default=0.0)
    return bool(usual) and best < (1 - loss) * median(usual)
