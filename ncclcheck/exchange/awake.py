"""How long this process has been running: a clock that stands still while it does.

A process that is stopped, or whose machine is paused or swaps, receives nothing, and its waits are over when it
resumes: that is no silence of the others. Whoever judges silence measures it by this clock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ncclcheck.timeouts import AWAKE_BEAT_S, LONGEST_GAP_S


class AwakeClock:
    """State: the last beat of this process, and how long it stood still so far."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._lock = now, threading.Lock()
        self._last_beat: float | None = None  # None: no heartbeat runs, so no pause is noticed
        self._still_s = 0.0

    def begin(self) -> None:
        """Begin to notice pauses: from now on a thread calls `beat` at short intervals."""
        with self._lock:
            self._last_beat = self._now()

    def beat(self) -> float:
        """Return the seconds of this clock. A gap since the last beat too long for a busy machine is a pause."""
        with self._lock:
            now = self._now()
            if self._last_beat is not None:
                gap_s = now - self._last_beat
                self._last_beat = now
                self._still_s += gap_s - AWAKE_BEAT_S if gap_s > LONGEST_GAP_S else 0.0
            return now - self._still_s

    @property
    def still_s(self) -> float:
        """How long this process has stood still so far."""
        self.beat()
        return self._still_s


_CLOCK = AwakeClock()
_is_beating = threading.Event()


def awake_s() -> float:
    """Return the monotonic time without the pauses of this process."""
    return _CLOCK.beat()


def still_s() -> float:
    """Return how long this process has stood still so far, as far as it was watched."""
    return _CLOCK.still_s


def notice_pauses() -> None:
    """Notice from now on where this process stands still: a thread beats."""
    if _is_beating.is_set():
        return
    _is_beating.set()
    _CLOCK.begin()
    threading.Thread(target=_beat, name="awake", daemon=True).start()


def _beat() -> None:
    while True:
        time.sleep(AWAKE_BEAT_S)
        _CLOCK.beat()


def _in_a_child() -> None:
    """Begin anew: no thread of the parent runs in a process that it forked, and one may have held the lock."""
    global _CLOCK, _is_beating
    _CLOCK, _is_beating = AwakeClock(), threading.Event()


os.register_at_fork(after_in_child=_in_a_child)
