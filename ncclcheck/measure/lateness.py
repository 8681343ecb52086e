"""How late each rank was, from durations that every rank measured on its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct

from ncclcheck.model.bench import RankTime


class RankSamples(Struct, frozen=True):
    """One rank's own view of a point: its time inside each call, and how long its process stood still meanwhile."""

    durations_us: list[float]
    stalled_us: float


def slowest_us(ranks: Sequence[Sequence[float]]) -> list[float]:
    """Time of each iteration: the slowest rank's."""
    return [max(iteration) for iteration in zip(*ranks, strict=True)]


def rank_times(samples: Sequence[RankSamples], hosts: Sequence[str]) -> tuple[RankTime, ...]:
    """Per rank: how long it kept the others waiting in a typical iteration, and its own mean time in the call.

    Clocks of different nodes are not compared. A collective ends for all at about the same time, so a rank that
    entered late spends less time inside than the rank that came first: longest duration - own duration, median over
    the iterations. That sees a rank that is late *between* calls. A rank that stands still *inside* a call (stopped,
    throttled, starved of CPU) makes the call equally long for everybody; its own heartbeat thread sees that,
    and the mean standstill per iteration counts where it is greater.

    Limits: a slow link shows in neither, since it delays both of its ends alike; a difference of a few tens of
    microseconds may be the algorithm's own staggered exit.
    """
    slowest = slowest_us([rank.durations_us for rank in samples])
    times = []
    for number, rank in enumerate(samples):
        entered_late = median(most - own for most, own in zip(slowest, rank.durations_us, strict=True))
        stalled = rank.stalled_us / len(slowest)
        times.append(
            RankTime(
                rank=number,
                host=hosts[number],
                late_us=round(max(entered_late, stalled), 3),
                mean_us=round(fmean(rank.durations_us), 3),
                stalled_us=round(stalled, 3),
            )
        )
    return tuple(times)
