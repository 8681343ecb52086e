"""Scripted arms: a race played over times that are drawn, as bench/trials leads it over real processes."""

from __future__ import annotations

import math
from random import Random

from msgspec import Struct

from ncclcheck.measure.trials.race import Rules, confirming_looks, is_confirmed, log_ratios
from ncclcheck.measure.trials.standings import TWIN, Standings

AS_IS = -2


class World(Struct, frozen=True):
    """How fast each arm is at each point (1.1: 10 % faster), and how the times scatter.

    `noise` is of one set of processes; `disturbed` the part of the sets that something else makes 30 % slower; `drift`
    by how much everything becomes slower over the race; `twin` how fast as-is is when measured again.
    """

    speeds: tuple[tuple[float, ...], ...]
    noise: float = 0.03
    disturbed: float = 0.0
    drift: float = 0.0
    twin: float = 1.0


class Played(Struct, frozen=True):
    """How a race ended: the arm that is advised (None: none), whether the twin differed, rounds, sets, standings."""

    advised: int | None
    twin_differs: bool
    rounds: int
    sets: int
    standings: Standings


def play(world: World, seed: int, gain: float = 0.03) -> Played:
    """Play one race to its end."""
    random = Random(seed)  # noqa: S311 (a sample, no secret)
    points = len(world.speeds[0])
    standings = Standings(Rules(len(world.speeds) + 1, points, gain), len(world.speeds))
    sets = 0

    def times(arm: int) -> tuple[float, ...]:
        nonlocal sets
        sets += 1
        slower = 1.3 if random.random() < world.disturbed else 1.0
        slower *= 1.0 + world.drift * sets / 100
        speed = (
            (1.0,) * points if arm == AS_IS else (world.twin,) * points if arm == TWIN else world.speeds[arm]
        )
        return tuple(1000 * slower / value * math.exp(random.gauss(0, world.noise)) for value in speed)

    while True:
        while not standings.is_over:
            order = [AS_IS, *standings.measured]
            random.shuffle(order)
            shown = {arm: times(arm) for arm in order}
            standings.add({arm: log_ratios(shown[AS_IS], shown[arm]) for arm in order if arm != AS_IS})
        winner = standings.best
        if winner is None or standings.twin_differs:
            return Played(None, standings.twin_differs, standings.rounds, sets, standings)
        again, better = list[tuple[float, ...]](), standings.better_at(winner)
        for look in confirming_looks(len(standings.figures[winner])):
            again += [log_ratios(times(AS_IS), times(winner)) for _ in range(look - len(again))]
            if is_confirmed(again, better):
                return Played(winner, False, standings.rounds, sets, standings)
        standings.leave(winner)
