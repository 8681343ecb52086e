"""A thread that notices when its own process did not run: stopped, throttled, or starved of CPU."""

from __future__ import annotations

import threading
import time

INTERVAL_S = 0.01
_TOLERATED_S = 0.001  # a timer on an idle machine is late by less


class Heartbeat:
    """Sleeps 10 ms at a time and adds up by how much it overslept. A class because the sum is shared by two threads.

    What it sees is a sample: a thread of the process that wants to run is delayed about as long as this one is. It
    costs some 20 us per 10 ms.
    """

    def __init__(self) -> None:
        self._overslept_s = 0.0
        self._taken_s = 0.0
        self._last = time.monotonic()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(INTERVAL_S)
            now = time.monotonic()
            late = now - self._last - INTERVAL_S
            self._last = now
            if late > _TOLERATED_S:
                self._overslept_s += late

    def take_s(self) -> float:
        """Seconds overslept since the last call of this function."""
        overslept, before = self._overslept_s, self._taken_s
        self._taken_s = overslept
        return overslept - before
