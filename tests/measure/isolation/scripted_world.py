"""A world of nodes with known faults, in which the planner's rounds are played: random, and the same for a seed."""

from __future__ import annotations

import math
import random
import time
from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.isolation.conclusion import Conclusion, conclude
from ncclcheck.measure.isolation.next_round import Plan, Round, next_round
from ncclcheck.measure.isolation.pair_tests import PairTest, deviation_of, middle_mean
from ncclcheck.model.benchmarks.isolation import PairOutcome

USUAL_GBIT_S = 100.0
SHARED_NOISE = 0.15  # by which a transfer varies more that shares a path: TCP does not share it evenly
SCATTERING = 7  # a prime
DISTURBED = 0.7  # what is left of the rate of a disturbed test


class World(Struct, frozen=True):
    """How many nodes, what is wrong with which, and how much the rates vary.

    `slow`: node -> what is left of its rate. `way`: in which direction. `flaky`: a slow node is slow in so many of its
    tests. `links`: pairs with a slow path. `leaf`: so many first nodes share an uplink that leaves 60 %. `trunk`: so
    many nodes share one path to the others, of one node's speed each way: the first ones, or, if `is_scattered`, any.
    `hangs`: nodes whose tests do not finish.
    """

    nodes: int
    slow: dict[int, float] = {}
    way: str = "both"
    flaky: float = 1.0
    links: frozenset[frozenset[int]] = frozenset()
    leaf: int = 0
    trunk: int = 0
    is_scattered: bool = False
    hangs: frozenset[int] = frozenset()
    noise: float = 0.02
    disturbed: float = 0.01

    def is_near(self, node: int) -> bool:
        """Return whether the node is on the near side of the trunk."""
        return (node * SCATTERING % self.nodes if self.is_scattered else node) < self.trunk


class Played(Struct, frozen=True):
    """What the planner concluded, after how many rounds, and the seconds of CPU of its slowest decision."""

    found: Conclusion
    rounds: int
    planner_s: float = 0.0
    transfers: int = 0

    @property
    def named(self) -> set[int]:
        """The members that it names."""
        return {entry.member for entry in self.found.named}


def with_slow(nodes: int, bad: int, effect: float, seed: int) -> dict[int, float]:
    """So many random nodes, each with so much less."""
    return dict.fromkeys(random.Random(seed).sample(range(nodes), bad), 1 - effect)  # noqa: S311


def play(world: World, seed: int, plan: Plan | None = None) -> Played:
    """Play all rounds."""
    plan = plan or Plan(seed)
    draw = random.Random(f"world {seed}")  # noqa: S311
    members, tests, rounds, planner_s = range(world.nodes), list[PairTest](), 0, 0.0
    while True:
        began = time.process_time()
        planned = next_round(plan, members, tests)
        planner_s = max(planner_s, time.process_time() - began)
        if not planned.pairs:
            break
        rounds += 1
        crossing = Counter(_ways(world, pair) for pair in planned.pairs)
        tests += [_tested(world, draw, planned, pair, crossing[_ways(world, pair)]) for pair in planned.pairs]
        ends = [end for pair in planned.pairs for end in pair]
        assert len(set(ends)) == len(ends)
    transfers = tests[-1].transfers if tests else 0
    return Played(conclude(plan, members, tests), rounds, planner_s, transfers)


def _ways(world: World, pair: tuple[int, int]) -> tuple[bool, bool]:
    """Return on which sides the pair is: those with the same sides use the trunk in the same direction at a time."""
    return world.is_near(pair[0]), world.is_near(pair[1])


def _tested(
    world: World, draw: random.Random, planned: Round, pair: tuple[int, int], sharing: int
) -> PairTest:
    first, second = pair
    number, lone = planned.number, len(planned.pairs) == 1
    outcome: PairOutcome = "hang" if world.hangs.intersection(pair) else "ok"
    if outcome != "ok":
        return PairTest(number, first, second, outcome=outcome, lone=lone)
    bad_now = {end for end in pair if end in world.slow and draw.random() < world.flaky}
    whole = draw.random() < world.disturbed / 2
    rates, deviations = [], []
    for source, target in ((first, second), (second, first)):
        left = 1.0
        if source in bad_now and world.way in ("both", "send"):
            left = min(left, world.slow[source])
        if target in bad_now and world.way in ("both", "receive"):
            left = min(left, world.slow[target])
        if frozenset(pair) in world.links:
            left *= 0.6
        if (first < world.leaf) != (second < world.leaf):
            left *= 0.6
        is_shared = world.is_near(first) != world.is_near(second) and sharing > 1
        if is_shared:
            left = min(left, 1 / sharing)
        noise = math.hypot(world.noise, SHARED_NOISE) if is_shared else world.noise
        transfers = [left * math.exp(draw.gauss(0, noise)) for _ in range(planned.transfers)]
        if draw.random() < world.disturbed / 2:
            transfers[0] *= DISTURBED
        deviations.append(deviation_of(transfers))
        rates.append(middle_mean(transfers) * USUAL_GBIT_S * (DISTURBED if whole else 1.0))
    test = PairTest(number, first, second, rates[0], rates[1], lone=lone, transfers=planned.transfers)
    return replace(test, deviations=(deviations[0], deviations[1]))


class Outcome(Struct, frozen=True):
    """What came of one world: how many bad things there were and were found, and sound ones that were named.

    `transfers`: of a test in the last round.
    """

    bad: int
    found: int
    false: int
    rounds: int
    undecided: bool
    transfers: int
    planner_s: float


def judged(world: World, seed: int) -> Outcome:
    """Play the world and compare what is said of it with what is true."""
    run = play(world, seed)
    bad = set(world.slow) | set(world.hangs)
    side = frozenset(range(world.leaf) if world.leaf else filter(world.is_near, range(world.nodes)))
    others = frozenset(range(world.nodes)) - side
    false = len(run.named - bad)
    found = len(run.named & bad)
    for members, _ in run.found.groups:
        is_one = bool(side) and (
            side.issuperset(members) or (bool(world.trunk) and others.issuperset(members))
        )
        found, false = found + is_one, false + (not is_one)
    links = {frozenset(link[:2]) for link in run.found.links}
    met_links = len(links & world.links)
    false += len(links - world.links)
    wanted = len(bad) + len(world.links) + bool(side)
    is_open = bool(run.found.undecided)
    return Outcome(wanted, found + met_links, false, run.rounds, is_open, run.transfers, run.planner_s)
