"""Settings against as-is, round by round: which are faster, which are out, and when that is decided.

In every round each environment is measured once, in fresh processes and in random order; the figure of a round is the
logarithm of the time as-is over the time of the arm. Intervals are corrected (Bonferroni) for all arms with the twin,
for all sizes, and for the few looks at which an arm may win. To leave the race needs no correction: it advises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.measure.trials.signed_rank import Shift, estimate, least_rounds, shift_of
from ncclcheck.model.benchmarks.trials import GAIN, LOSS, Effect

FAMILY_ERROR = 0.05  # the chance that any arm of the run is called faster or slower and is not
TWIN_ERROR = 0.01  # the chance that two equal environments are called different
LOOKS = 4
_BETWEEN_LOOKS = 1.35
LEAST_ROUNDS = 6  # before it no arm leaves: with fewer there is no interval of 95 %
_LEAVING_ERROR = 0.05
_LEAST_CONFIRMING = 5  # with fewer no interval is one-sided 95 %
CONFIRMING_ERROR = 0.10  # two-sided: 5 % that chance alone confirms

Standing: TypeAlias = Literal["racing", "candidate", "refused", "slower", "no gain", "beaten"]
Rounds: TypeAlias = Sequence[Sequence[float]]  # of each round: the figure of each point


class Rules(Struct, frozen=True):
    """`arms` with the twin; `points` of the plan; the least gain that counts."""

    arms: int
    points: int
    gain: float = GAIN

    @property
    def error(self) -> float:
        """Return the chance of error of one interval at one look."""
        return FAMILY_ERROR / (self.arms * self.points * LOOKS)

    @property
    def twin_error(self) -> float:
        """Return the same of the twin: where it is wrong, a sound machine is called one that resolves nothing."""
        return min(self.error, TWIN_ERROR / (self.points * LOOKS))

    @property
    def looks(self) -> tuple[int, ...]:
        """Return after which rounds an arm may win; the last is the end."""
        first = max(LEAST_ROUNDS, least_rounds(self.twin_error))
        return tuple(math.ceil(first * _BETWEEN_LOOKS**number) for number in range(LOOKS))


def log_ratios(as_is_us: Sequence[float], arm_us: Sequence[float]) -> tuple[float, ...]:
    """Return the figure of a round: of each point how much faster the arm was, as a logarithm."""
    return tuple(math.log(before / after) for before, after in zip(as_is_us, arm_us, strict=True))


def point_shifts(rounds: Rounds, points: int, error: float) -> tuple[Shift | None, ...]:
    """Return the shift of each point with that error."""
    return tuple(shift_of([row[point] for row in rounds], error) for point in range(points))


def effect_of(shift: Shift | None, gain: float) -> Effect:
    """Return the effect at one point: better and worse are proven and at least the gain, none is within it."""
    if shift is None:
        return "undecided"
    least = math.log1p(gain)
    if shift.low > 0 and shift.middle >= least:
        return "better"
    if shift.high < 0 and shift.middle <= -least:
        return "worse"
    return "none" if -least < shift.low and shift.high < least else "undecided"


def standing(rounds: Rounds, rules: Rules, *, may_win: bool) -> Standing:
    """Return how an arm stands after these rounds; `may_win`: this is one of the looks, which alone prove a gain."""
    if len(rounds) < LEAST_ROUNDS:
        return "racing"
    sure = point_shifts(rounds, rules.points, rules.error)
    likely = point_shifts(rounds, rules.points, _LEAVING_ERROR)
    loss = math.log1p(-LOSS)
    loses = any(shift is not None and shift.high < 0 and shift.middle < loss for shift in likely)
    wins = any(effect_of(shift, rules.gain) == "better" for shift in sure)
    if wins and may_win and loses:
        return "refused"
    if wins and may_win and all(shift is not None and shift.middle >= loss for shift in likely):
        return "candidate"
    if any(shift is None or shift.high >= math.log1p(rules.gain) for shift in likely):
        return "racing"
    return "slower" if loses else "no gain"


def twin_differs(rounds: Rounds, rules: Rules) -> bool:
    """Return whether two equal environments differ: then this machine resolves nothing."""
    return any(
        shift is not None and not shift.low <= 0 <= shift.high
        for shift in point_shifts(rounds, rules.points, rules.twin_error)
    )


def best_of(candidates: Mapping[int, Rounds], points: int) -> int | None:
    """Return the candidate with the largest gain over all points; None where there is none."""

    def gain(arm: int) -> float:
        return sum(estimate([row[point] for row in candidates[arm]]) for point in range(points))

    return max(candidates, key=gain, default=None)


def is_beaten(rounds: Rounds, best: Rounds, points: int) -> bool:
    """Return whether the arm is slower than the candidate at every point."""
    pairs = zip(
        point_shifts(rounds, points, _LEAVING_ERROR), point_shifts(best, points, _LEAVING_ERROR), strict=True
    )
    return all(
        interval is not None and winner is not None and interval.high < winner.low
        for interval, winner in pairs
    )


def confirming_looks(rounds: int) -> tuple[int, int]:
    """Return after how many rounds a winner of so many rounds may be confirmed.

    The second look is for a disturbance: of few rounds a single one keeps any winner from being confirmed.
    """
    first = max(_LEAST_CONFIRMING, math.ceil(rounds / 2))
    return first, 2 * first


def is_confirmed(rounds: Rounds, better: Sequence[int]) -> bool:
    """Return whether the points at which an arm won are faster again, together, and none is lost."""
    won = shift_of([sum(row[point] for point in better) / len(better) for row in rounds], CONFIRMING_ERROR)
    if won is None or won.low <= 0:
        return False
    points = range(len(rounds[0]))
    lost = (shift_of([row[point] for row in rounds], CONFIRMING_ERROR) for point in points)
    return not any(
        shift is not None and shift.high < 0 and shift.middle < math.log1p(-LOSS) for shift in lost
    )
