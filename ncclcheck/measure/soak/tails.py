"""Which rank made an iteration take far longer than the others: it came late, or it did not run."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.model.benchmarks.soak import SoakTail

WORTH = 5  # times the median of the block: what the judge may call a tail
MOST = 8  # of a block: the longest ones
_SHARE = 0.5  # of the iteration, that one rank has to explain


def tail_of(time_us: float, durations_us: Sequence[float], stalled_us: Sequence[float]) -> SoakTail:
    """Return the tail with its culprit.

    `durations_us`: how long each rank was inside the call; who came last was inside for the shortest time, and the
    others waited for it. `stalled_us`: for how long each rank's process did not run during the batch.
    """
    stopped = max(range(len(stalled_us)), key=lambda rank: stalled_us[rank])
    if stalled_us[stopped] >= _SHARE * time_us:
        return SoakTail(round(time_us, 1), stopped, "stopped", round(stalled_us[stopped], 1))
    late = min(range(len(durations_us)), key=lambda rank: durations_us[rank])
    by_us = max(durations_us) - durations_us[late]
    if len(durations_us) > 1 and by_us >= _SHARE * time_us:
        return SoakTail(round(time_us, 1), late, "late", round(by_us, 1))
    return SoakTail(round(time_us, 1), None, "unknown", 0.0)


def longest(tails: Sequence[SoakTail]) -> tuple[SoakTail, ...]:
    """Return the longest ones."""
    return tuple(sorted(tails, key=lambda tail: -tail.time_us)[:MOST])
