"""For how long this process did not run though it should have: stopped, throttled, or waiting for a core."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ncclcheck import timeouts

_OWN_THREADS = Path("/proc/self/task")
_NS = 1e9


class Idle(NamedTuple):
    """For how long a process did not run though it wanted to."""

    stood_s: float  # none of it ran: stopped, or throttled
    waited_s: float  # its threads, one after the other, waited for a core that others used


NOT_IDLE = Idle(0.0, 0.0)


class Heartbeat:
    """Sleeps 4 ms at a time and adds up by how much it overslept. A class because the sum is shared by two threads.

    A stopped process oversleeps. One that has to share its core with others waits for that core: that is in the
    kernel's own account of each thread (Linux `Documentation/scheduler/sched-stats.rst`, /proc/PID/schedstat), and is
    not counted as oversleeping. Nor is what its maker's thread waited, which may hold Python's lock meanwhile. Where
    the kernel keeps no account, it is 0. The beat costs some 30 us per 4 ms, a question some 20 us per thread.
    """

    def __init__(self, threads: Path = _OWN_THREADS) -> None:
        self._threads = threads
        self._overslept_s = 0.0
        self._taken_s = 0.0
        self._last = time.monotonic()
        self._own, self._maker = "", str(threading.get_native_id())
        self._waited_ns: Mapping[str, int] = {}
        self._taken_at = self._last
        ready = threading.Event()
        beating = threading.Thread(
            target=_beat, args=(weakref.ref(self), ready), name="heartbeat", daemon=True
        )
        beating.start()
        ready.wait()
        self._waited_ns = waited_ns(self._threads)

    def begin(self) -> list[_Account]:
        """Return the accounts that tell why a beat is late: of this thread, which beats, and of the maker's."""
        self._own = str(threading.get_native_id())
        return [_Account(self._threads / name) for name in (self._own, self._maker)]

    def beat(self, accounts: Sequence[_Account]) -> None:
        """Add up by how much the sleep that has just ended was too long."""
        now, waited_s = time.monotonic(), sum(account.waited_s() for account in accounts)
        late_s = now - self._last - timeouts.HEARTBEAT_S - waited_s
        self._last = now
        if late_s > timeouts.HEARTBEAT_LATE_S:
            self._overslept_s += late_s

    def take(self) -> Idle:
        """Return the time without a core since the last call of this function.

        The threads of a rank work one after the other for a call, so what they waited is added up.
        """
        overslept_s, before_s = self._overslept_s, self._taken_s
        self._taken_s = overslept_s
        now, waited = time.monotonic(), waited_ns(self._threads)
        elapsed_s, self._taken_at = now - self._taken_at, now
        grown_ns = sum(
            max(0, ns - self._waited_ns.get(thread, 0))
            for thread, ns in waited.items()
            if thread != self._own
        )
        self._waited_ns = waited
        return Idle(overslept_s - before_s, min(grown_ns / _NS, elapsed_s))


def _beat(of: weakref.ref[Heartbeat], ready: threading.Event) -> None:
    """Beat for as long as somebody has the heartbeat."""
    heartbeat = of()
    if heartbeat is None:
        ready.set()
        return
    accounts = heartbeat.begin()
    ready.set()
    while heartbeat is not None:
        del heartbeat  # so that its owner can drop it meanwhile
        time.sleep(timeouts.HEARTBEAT_S)
        heartbeat = of()
        if heartbeat is not None:
            heartbeat.beat(accounts)
    for account in accounts:
        account.close()


class _Account:
    """The kernel's account of one thread. A class because the file stays open, and is read anew at each beat."""

    def __init__(self, thread: Path) -> None:
        self._descriptor: int | None = None
        with suppress(OSError):
            self._descriptor = os.open(thread / "schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._before_ns = 0
        self.waited_s()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def waited_s(self) -> float:
        """Return for how long the thread waited for a core since the last call."""
        now_ns = before_ns = self._before_ns
        if self._descriptor is not None:
            with suppress(OSError):
                now_ns = self._before_ns = _waited_ns(os.pread(self._descriptor, 200, 0))
        return max(0, now_ns - before_ns) / _NS


def waited_ns(threads: Path) -> dict[str, int]:
    """Return by thread the nanoseconds it was ready and waited for a core; nothing where that is unknown."""
    waited = {}
    with suppress(OSError):
        for thread in threads.iterdir():
            with suppress(OSError):  # it ended meanwhile, or the kernel keeps no account
                waited[thread.name] = _waited_ns((thread / "schedstat").read_bytes())
    return waited


def _waited_ns(line: bytes) -> int:
    fields = line.split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0
