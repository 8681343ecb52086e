"""When the ranks of a job end, in order, and with what: pidfds tell while the kernel still has the exit code."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import threading
import time
from contextlib import suppress

from msgspec import Struct

from ncclcheck.facts.job.rank_processes import RankProcess, stat_fields
from ncclcheck.timeouts import DEATHS_POLL_S

_AT_ONCE = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


# struct pidfd_info: mask, cgroup, eleven ids, and the status as of wait(2); PIDFD_GET_INFO is _IOWR(0xFF, 11, it).
_INFO = struct.Struct("=Q52xi")
_INFO_EXIT = 1 << 3
_GET_INFO = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11


class Death(Struct, frozen=True):
    """The end of a rank. `status` is that of wait(2); None: its parent had collected it already."""

    rank: int | None
    pid: int
    at_s: float
    status: int | None

    @property
    def is_failure(self) -> bool:
        """Return True if the rank did not end with exit code 0, as far as is known."""
        return bool(self.status)

    @property
    def by_fatal_signal(self) -> bool:
        """Return True if the kernel ended the rank at once: it had no time to notice that another one failed."""
        return (
            self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in _AT_ONCE
        )

    @property
    def words(self) -> str:
        """`was killed by SIGKILL`, `ended with exit code 1`."""
        if self.status is None:
            return "ended; its exit code was not seen"
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            try:
                return f"was killed by {signal.Signals(number).name}"
            except ValueError:
                return f"was killed by signal {number}"
        return f"ended with exit code {os.waitstatus_to_exitcode(self.status)}"


class DeathWatch:
    """A thread that waits for processes to end. `deaths` are those that ended, the first one first."""

    def __init__(self) -> None:
        self.deaths: list[Death] = []
        self._followed: dict[int, RankProcess] = {}
        self._known: set[tuple[int, str]] = set()
        self._ends = threading.Event()
        self._poll = select.poll()
        self._thread = threading.Thread(target=self._wait, name="deaths", daemon=True)
        self._thread.start()

    def follow(self, ranks: tuple[RankProcess, ...]) -> None:
        """Also wait for these processes; those that are known already stay as they are."""
        for rank in ranks:
            if (rank.pid, rank.started) in self._known:
                continue
            self._known.add((rank.pid, rank.started))
            with suppress(OSError, AttributeError):  # it ended just now, or kernel or Python have no pidfds
                descriptor = os.pidfd_open(rank.pid)
                self._followed[descriptor] = rank
                self._poll.register(descriptor, select.POLLIN)

    def close(self) -> None:
        """End the thread and close what it waited for, after a last look."""
        self._ends.set()
        self._thread.join(DEATHS_POLL_S * 5)
        for descriptor in list(self._followed):
            os.close(descriptor)

    def _wait(self) -> None:
        while not self._ends.is_set():
            self._collect(DEATHS_POLL_S)
        self._collect(0.0)

    def _collect(self, wait_s: float) -> None:
        for descriptor, _ in self._poll.poll(wait_s * 1000):
            rank = self._followed.pop(descriptor, None)
            if rank is None:
                continue
            self._poll.unregister(descriptor)
            at_s = time.monotonic()
            self.deaths.append(Death(rank.rank, rank.pid, at_s, _status_of(rank, descriptor)))
            os.close(descriptor)


def _status_of(rank: RankProcess, descriptor: int) -> int | None:
    """Return the status of a process that ended: of a zombie, or as its pidfd keeps it after that (Linux 6.15)."""
    fields = stat_fields(rank.pid)
    if fields and fields[0] == "Z" and fields[19] == rank.started:
        return int(fields[49])
    info = bytearray(_INFO.size)
    _INFO.pack_into(info, 0, _INFO_EXIT, 0)
    with suppress(OSError):
        fcntl.ioctl(descriptor, _GET_INFO, info)
        mask, status = _INFO.unpack(info)
        return int(status) if mask & _INFO_EXIT else None
    return None
