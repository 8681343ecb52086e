"""How busy this thread and the cores of this machine are: was the CPU the limit of what was measured?"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing

_IDLE, _IOWAIT = 3, 4  # columns of /proc/stat after the name, proc_stat(5)
_COLUMNS = 8  # up to steal; guest time is in user time already
_NO_SCHEDSTAT = Missing("unsupported", "no schedstat of our threads in /proc")
_ENDED = Missing(
    "error", "the transfer was over before this end began to look: it was not given a core in time"
)


class Moment(Struct, frozen=True):
    """How long a thread had been busy at a time of the monotonic clock."""

    at: float
    busy_s: Fact[float]


def moment_of(thread: threading.Thread) -> Moment:
    """Return the time, with the seconds that this thread has run or waited for a core since it began.

    Of /proc/self/task/N/schedstat: time on the CPU and on a run queue, in ns (Documentation/scheduler/sched-stats.rst).
    The waiting counts, since a thread that does not get a core is limited by the CPU as well.
    """
    try:
        ran, waited, _ = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()
        return Moment(time.monotonic(), (int(ran) + int(waited)) / 1e9)
    except (OSError, ValueError):
        return Moment(time.monotonic(), _NO_SCHEDSTAT if thread.is_alive() else _ENDED)


def busiest_thread(before: Sequence[Moment], after: Sequence[Moment]) -> Fact[float]:
    """Return the largest share of the time from `before` to `after` in which a single thread was busy."""
    shares = [
        (late.busy_s - early.busy_s) / (late.at - early.at)
        for early, late in zip(before, after, strict=True)
        if not isinstance(early.busy_s, Missing) and not isinstance(late.busy_s, Missing)
        if late.at > early.at
    ]
    if shares:
        return round(min(max(shares), 1.0), 2)
    return next((moment.busy_s for moment in before if isinstance(moment.busy_s, Missing)), _ENDED)


def core_ticks() -> Fact[tuple[tuple[int, int], ...]]:
    """Return (busy, all) clock ticks of each core since the machine started, from /proc/stat."""
    found = []
    with suppress(OSError, ValueError):
        for line in Path("/proc/stat").read_text().splitlines():
            name, *columns = line.split()
            if not name.startswith("cpu"):
                break
            if name != "cpu":
                ticks = [int(word) for word in columns[:_COLUMNS]]
                found.append((sum(ticks) - ticks[_IDLE] - ticks[_IOWAIT], sum(ticks)))
    return tuple(found) or Missing("unsupported", "no cores in /proc/stat")


def busiest_core(
    before: Fact[Sequence[tuple[int, int]]], after: Fact[Sequence[tuple[int, int]]]
) -> Fact[float]:
    """Return the busy share of the busiest core in between, in ticks of 10 ms."""
    if isinstance(before, Missing):
        return before
    if isinstance(after, Missing):
        return after
    shares = [
        (busy - busy_before) / (total - total_before)
        for (busy_before, total_before), (busy, total) in zip(before, after, strict=False)
        if total > total_before
    ]
    return round(min(max(shares), 1.0), 2) if shares else Missing("absent", "no clock tick went by")


def sleep_until(moment: float) -> None:
    """Return at that time of the monotonic clock, or at once where it has passed."""
    time.sleep(max(0.0, moment - time.monotonic()))
