"""A point in time by which something ends, shared by everything that happens on the way."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ncclcheck import timeouts
from ncclcheck.exchange.awake import awake_s


class Deadline:
    """A monotonic end time; every wait of a run is cut by it. `whole`: the one that it is a part of (`within`).

    A part stands still while this process does: what it waits for had no time to be heard. The whole does not.
    """

    def __init__(self, seconds: float, whole: Deadline | None = None) -> None:
        self._now = time.monotonic if whole is None else awake_s
        self._end = self._now() + seconds
        self.whole: Deadline = self if whole is None else whole

    def left(self, at_most: float | None = None) -> float:
        """Return the seconds until the end, never negative, and never more than `at_most`."""
        left = max(0.0, self._end - self._now())
        left = left if self.whole is self else min(left, self.whole.left())
        return left if at_most is None else min(left, at_most)

    def within(self, seconds: float) -> Deadline:
        """Return a deadline `seconds` from now, or this one if it comes first."""
        return Deadline(self.left(seconds), self.whole)

    @property
    def passed(self) -> bool:
        """Return whether no time is left."""
        return self.left() <= 0.0


def polls(deadline: Deadline) -> Iterable[None]:
    """Yield at once and then at growing intervals, for the last time at the deadline."""
    interval = timeouts.STORE_FIRST_POLL_S
    while True:
        last = deadline.passed
        yield
        if last:
            return
        time.sleep(deadline.left(interval))
        interval = min(interval * 1.5, timeouts.STORE_LAST_POLL_S)
