"""Whether node 0 itself stood still: a paused virtual machine, a swap storm, SIGSTOP. It must not blame the others."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from ncclcheck.timeouts import STANDSTILL_LEAST_S, STANDSTILL_LOOK_S


class Standstill:
    """Tells for how long this process did not run. State: a thread that looks at the clock, and what it has seen.

    Used as a context: the thread ends with it.
    """

    def __init__(self) -> None:
        self._lock, self._over = threading.Lock(), threading.Event()
        self._seen_s, self._last_s = 0.0, _now_s()
        self._thread = threading.Thread(target=self._watch, name="standstill", daemon=True)

    def __enter__(self) -> Standstill:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()

    def total_s(self) -> float:
        """Return for how many seconds this process stood still so far; a moment or two count as nothing."""
        with self._lock:
            now_s = _now_s()
            missed_s = now_s - self._last_s - STANDSTILL_LOOK_S
            if missed_s >= STANDSTILL_LEAST_S:  # the thread has not looked either: it is just over
                self._seen_s, self._last_s = self._seen_s + missed_s, now_s
            return self._seen_s

    def _watch(self) -> None:
        while not self._over.wait(STANDSTILL_LOOK_S):
            self.total_s()
            with self._lock:
                self._last_s = _now_s()


def _now_s() -> float:
    """Return the time of a clock that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
