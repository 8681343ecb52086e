"""Where every arm of a race stands after the rounds so far."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.measure.trials.race import (
    Rounds,
    Rules,
    Standing,
    best_of,
    effect_of,
    is_beaten,
    point_shifts,
    standing,
    twin_differs,
)

TWIN = -1  # the number of the twin of as-is; arms count from 0


class Standings:
    """The figures of each arm and its standing. State: what was measured so far."""

    def __init__(self, rules: Rules, arms: int) -> None:
        self.rules = rules
        self.figures: dict[int, list[tuple[float, ...]]] = {arm: [] for arm in (TWIN, *range(arms))}
        self.standing: dict[int, Standing] = dict.fromkeys(range(arms), "racing")
        self.out: set[int] = set()  # who failed, or won and was not confirmed
        self.rounds = 0
        self.twin_differs = False

    def add(self, figures: Mapping[int, tuple[float, ...]]) -> None:
        """Take the figures of one round, and judge every arm that is still in the race."""
        self.rounds += 1
        for arm, row in figures.items():
            self.figures[arm].append(row)
        is_look = self.rounds in self.rules.looks
        self.twin_differs = self.twin_differs or (is_look and twin_differs(self.figures[TWIN], self.rules))
        for arm in self._racing():
            self.standing[arm] = standing(self.figures[arm], self.rules, may_win=is_look)
        best = self.best
        for arm in self._racing() if best is not None else ():
            if is_beaten(self.figures[arm], self.figures[best or 0], self.rules.points):
                self.standing[arm] = "beaten"

    def leave(self, arm: int) -> None:
        """Take an arm that failed, or was not confirmed, out of the race; the arms that it had beaten race again."""
        was_best = arm == self.best
        self.out.add(arm)
        for beaten in [arm for arm, how in self.standing.items() if how == "beaten"] if was_best else ():
            self.standing[beaten] = "racing"

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to decide, or more rounds would decide nothing."""
        return self.twin_differs or not self._racing() or self.rounds >= self.rules.looks[-1]

    @property
    def measured(self) -> tuple[int, ...]:
        """Return who is measured in the next round beside as-is: not who won, who is confirmed at the end."""
        return (TWIN, *self._racing())

    @property
    def candidates(self) -> dict[int, Rounds]:
        """Return the arms that won, with their figures up to then: a proof is not taken back by the next rounds."""
        return {
            arm: self.figures[arm]
            for arm, how in self.standing.items()
            if how == "candidate" and arm not in self.out
        }

    @property
    def best(self) -> int | None:
        """Return the arm with the largest gain of those that won; None where none did."""
        return best_of(self.candidates, self.rules.points)

    def better_at(self, arm: int) -> list[int]:
        """Return the points at which the arm is faster, with the certainty of the whole race."""
        shifts = point_shifts(self.figures[arm], self.rules.points, self.rules.error)
        return [point for point, shift in enumerate(shifts) if effect_of(shift, self.rules.gain) == "better"]

    def _racing(self) -> tuple[int, ...]:
        return tuple(arm for arm, how in self.standing.items() if how == "racing" and arm not in self.out)
