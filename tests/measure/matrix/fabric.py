"""A fabric of leaves with shared trunks, in which the rounds of `matrix` are played: the same for a seed."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.matrix_plan import (
    MatrixFound,
    conclude_matrix,
    matrix_plan,
    next_matrix_round,
)

USUAL_GBIT_S = 100.0


class Fabric(Struct, frozen=True):
    """The sizes of the leaves, in the order of the nodes, and the oversubscription of each trunk (1: none).

    `uplinks`: what is left of a leaf's trunk. `slow`: what is left of a path (from, to). `sends`, `receives`: what is
    left of what a node sends or receives. `busy`: how much the cores of the machine take from all tests of a round.
    """

    leaves: tuple[int, ...]
    oversubscribed: float = 1.0
    noise: float = 0.02
    disturbed: float = 0.01
    slow: dict[tuple[int, int], float] = {}
    sends: dict[int, float] = {}
    receives: dict[int, float] = {}
    uplinks: dict[int, float] = {}
    shuffled: bool = False
    busy: float = 0.0

    @property
    def nodes(self) -> int:
        return sum(self.leaves)

    def leaf_of(self, seed: int) -> list[int]:
        """The number of each node's leaf."""
        found = [number for number, size in enumerate(self.leaves) for _ in range(size)]
        if self.shuffled:
            random.Random(f"order {seed}").shuffle(found)  # noqa: S311
        return found


class Played(Struct, frozen=True):
    found: MatrixFound
    rounds: int
    tests: int

    def leaves(self) -> set[frozenset[int]]:
        return {frozenset(group) for group in self.found.leaves.groups}


def true_leaves(fabric: Fabric, seed: int) -> set[frozenset[int]]:
    leaf_of = fabric.leaf_of(seed)
    return {
        frozenset(member for member, leaf in enumerate(leaf_of) if leaf == number)
        for number in range(len(fabric.leaves))
    }


def play(fabric: Fabric, seed: int, *, full: bool | None = None) -> Played:
    """Play all rounds."""
    draw, leaf_of = random.Random(f"fabric {seed}"), fabric.leaf_of(seed)  # noqa: S311
    plan, members = matrix_plan(range(fabric.nodes), full=full), range(fabric.nodes)
    tests, rounds = list[PairTest](), 0
    while True:
        planned = next_matrix_round(plan, members, tests)
        if not planned.pairs:
            break
        rounds += 1
        left = math.exp(-abs(draw.gauss(0, fabric.busy)))
        ends = [end for pair in planned.pairs for end in pair]
        assert len(set(ends)) == len(ends)
        reverse = [(second, first) for first, second in planned.pairs]
        if planned.at_once:  # a transfer and the one against it take as long as the slower of both
            both = _rates(fabric, leaf_of, draw, (*planned.pairs, *reverse))
            forth = back = list(map(min, both[: len(reverse)], both[len(reverse) :]))
        else:
            forth = _rates(fabric, leaf_of, draw, planned.pairs)
            back = _rates(fabric, leaf_of, draw, reverse)
        tests += [
            PairTest(planned.number, *pair, left * rate, left * other)
            for pair, rate, other in zip(planned.pairs, forth, back, strict=True)
        ]
    found = conclude_matrix(plan, members, tests)
    assert found is not None
    return Played(found, rounds, len(tests))


def _rates(
    fabric: Fabric, leaf_of: list[int], draw: random.Random, paths: Sequence[tuple[int, int]]
) -> list[float]:
    out, into = Counter[int](), Counter[int]()
    for source, target in paths:
        if leaf_of[source] != leaf_of[target]:
            out[leaf_of[source]] += 1
            into[leaf_of[target]] += 1
    rates = []
    for source, target in paths:
        left = min(
            fabric.sends.get(source, 1.0),
            fabric.receives.get(target, 1.0),
            fabric.slow.get((source, target), 1.0),
        )
        if leaf_of[source] != leaf_of[target]:
            for leaf, flows in ((leaf_of[source], out), (leaf_of[target], into)):
                trunk = fabric.leaves[leaf] * fabric.uplinks.get(leaf, 1.0) / fabric.oversubscribed
                left = min(left, trunk / flows[leaf])
        parts = [left * math.exp(draw.gauss(0, fabric.noise)) for _ in range(3)]
        whole = 0.7 if draw.random() < fabric.disturbed else 1.0
        rates.append(median(parts) * whole * USUAL_GBIT_S)
    return rates
