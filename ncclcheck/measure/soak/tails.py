"""Which rank made an iteration take far longer than the others: it came late, or it did not run."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.model.benchmarks.soak import SoakTail

WORTH = 5  # times the median of the block: what the judge may call a tail
MOST = 8  # of a block: the longest ones
_SHARE = 0.5  # of the iteration, that one rank has to explain


def tails_of(
    ranks_us: Sequence[Sequence[float]],
    stalled_us: Sequence[float],
    usual_us: float,
    *,
    together: bool = True,
) -> list[SoakTail]:
    """Return the long iterations of a batch, the longest first.

    `ranks_us`: per rank how long it was inside each call. `stalled_us`: for how long each rank's process did not run
    during the whole batch; what explains one iteration is not left for the next.
    """
    left_us = list(stalled_us)
    found = []
    for durations_us in sorted(zip(*ranks_us, strict=True), key=max, reverse=True):
        if max(durations_us) <= WORTH * usual_us:
            break
        tail = tail_of(max(durations_us), durations_us, left_us, together=together)
        if tail.how == "stopped" and tail.rank is not None:
            left_us[tail.rank] -= min(left_us[tail.rank], tail.time_us)
        found.append(tail)
    return found


def tail_of(
    time_us: float, durations_us: Sequence[float], stalled_us: Sequence[float], *, together: bool = True
) -> SoakTail:
    """Return the tail with its culprit.

    `durations_us`: how long each rank was inside the call; who came last was inside for the shortest time, and the
    others waited for it. That holds where all end together: who only sends in a broadcast leaves early. `stalled_us`:
    for how long each rank's process did not run.
    """
    stopped = max(range(len(stalled_us)), key=lambda rank: stalled_us[rank])
    if stalled_us[stopped] >= _SHARE * time_us:
        return SoakTail(round(time_us, 1), stopped, "stopped", round(stalled_us[stopped], 1))
    late = min(range(len(durations_us)), key=lambda rank: durations_us[rank])
    by_us = max(durations_us) - durations_us[late]
    if together and len(durations_us) > 1 and by_us >= _SHARE * time_us:
        return SoakTail(round(time_us, 1), late, "late", round(by_us, 1))
    return SoakTail(round(time_us, 1), None, "unknown", 0.0)


def longest(tails: Sequence[SoakTail]) -> tuple[SoakTail, ...]:
    """Return the longest ones."""
    return tuple(sorted(tails, key=lambda tail: -tail.time_us)[:MOST])
