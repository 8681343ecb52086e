"""How late each rank was, from durations that every rank measured on its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct

from ncclcheck.model.bench import RankTime


class SampleBlock(Struct, frozen=True):
    """A few iterations in a row on one rank: for how long altogether it stood still, and waited for a core."""

    iterations: int
    stalled_us: float
    waited_us: float


class RankSamples(Struct, frozen=True):
    """One rank's own view of a point: its time inside each call, and what kept it from running meanwhile."""

    durations_us: list[float]
    parts: list[SampleBlock]


def slowest_us(ranks: Sequence[Sequence[float]]) -> list[float]:
    """Return the time of each iteration: the slowest rank's."""
    return [max(iteration) for iteration in zip(*ranks, strict=True)]


def rank_times(
    samples: Sequence[RankSamples], hosts: Sequence[str], *, together: bool = True
) -> tuple[RankTime, ...]:
    """Return per rank how long it kept the others waiting in a typical iteration, and its own mean time in the call.

    Clocks of different nodes are not compared. A collective that needs all ends for all at about the same time
    (`together`), so a rank that entered late spends less time inside than the first rank: longest duration -
    own duration, median over the iterations. That sees a rank that is late *between* calls. (Who only sends in a
    broadcast or a gather leaves early, so there it says nothing.) A rank that stands still *inside* a call (stopped,
    throttled) makes the call equally long for everybody; its own heartbeat thread sees that, and the mean standstill
    per iteration counts where it is greater. A rank that shares its core with others is slow inside the call, too: how
    long it waited for the core is apart, since ranks that share a node also wait for each other. That is the median
    over the parts, because the rank that the kernel lets wait changes every few milliseconds.

    Limits: a slow link shows in none of them, since it delays both of its ends alike (`bench/parts_alone.py` is for
    that); a difference of a few tens of microseconds may be the algorithm's own staggered exit.
    """
    slowest = slowest_us([rank.durations_us for rank in samples])
    times = []
    for number, rank in enumerate(samples):
        behind = (most - duration for most, duration in zip(slowest, rank.durations_us, strict=True))
        entered_late = median(behind) if together else 0.0
        stalled = sum(part.stalled_us for part in rank.parts) / len(slowest)
        waited = [part.waited_us / part.iterations for part in rank.parts if part.iterations]
        times.append(
            RankTime(
                rank=number,
                host=hosts[number],
                late_us=round(max(entered_late, stalled), 3),
                mean_us=round(fmean(rank.durations_us), 3),
                stalled_us=round(stalled, 3),
                waited_us=round(median(waited), 3) if waited else 0.0,
            )
        )
    return tuple(times)
