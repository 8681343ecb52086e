"""The time of each iteration of a loop that several ranks run together, from what each measured on its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def iteration_times_us(ranks: Sequence[Sequence[float]]) -> list[float]:
    """Return the time of each iteration: between the slowest rank's ends of the one before and of this one.

    `ranks` holds each rank's durations of the same calls, made back to back after a barrier. The sum over the
    iterations is what the slowest rank's loop took. The longest duration of each iteration alone would add up to more:
    a rank that leaves one call early waits longer in the next, and its waiting would count twice.
    """
    done = [max(moments) for moments in zip(*(accumulate(durations) for durations in ranks), strict=True)]
    return [after - before for before, after in zip([0.0, *done], done, strict=False)]
