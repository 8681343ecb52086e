"""Which rank of a job failed first, when the nodes tell of several: that one is the culprit. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.model.job.together import RankEnd
from ncclcheck.timeouts import WATCH_AT_ONCE_S, WATCH_CLOCK_S


def in_order(ends: Sequence[RankEnd], clocks: Mapping[str, float]) -> tuple[RankEnd, ...]:
    """Return the ends, the first one first. `clocks`: by host, how far behind ours the clock of its beats seems.

    Of those that ended within a second of the first, one that was ended by a signal comes first: it took no
    time to end, while a victim's Python needs some to notice and to raise.
    """
    timed = sorted(((_at_s(end, clocks), end) for end in ends), key=lambda pair: pair[0])
    if not timed:
        return ()
    soon_s = timed[0][0] + WATCH_AT_ONCE_S
    ordered = sorted(timed, key=lambda pair: not (pair[1].by_signal and pair[0] <= soon_s))
    return tuple(end for _, end in ordered)


def _at_s(end: RankEnd, clocks: Mapping[str, float]) -> float:
    behind_s = clocks.get(end.rank.host, 0.0)
    return end.at_s + (behind_s if abs(behind_s) > WATCH_CLOCK_S else 0.0)
