"""Following a job to its end: signals are passed on, looks happen on time, and a bug of ours never ends the job."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection

from ncclcheck.cli.crash import describe, save_traceback
from ncclcheck.cli.screen import write_error
from ncclcheck.cli.watching.watcher import Watcher
from ncclcheck.timeouts import WATCH_FORWARD_S, WATCH_TICK_S

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LOOK_NOW = signal.SIGUSR1
_SENT_BY_KERNEL = 0x80  # SI_KERNEL: a terminal, which sends it to the whole process group, the job included


def block_signals() -> frozenset[int]:
    """Block the signals that `follow` takes, unless they are ignored; return the mask before, for the job."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel throws the job's exit code away
    taken = [number for number in (*_ENDING, _LOOK_NOW) if signal.getsignal(number) != signal.SIG_IGN]
    return frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, {*taken, signal.SIGCHLD}))


def follow(watcher: Watcher, is_over: Callable[[], bool], job: int | None) -> None:
    """Look at the job until it is over. `job` is our child, which gets the signals sent to us; None: only watched.

    Of a job that is only watched, a signal ends the watching.
    """
    passed_on: dict[int, float] = {}
    taken = _blocked()
    next_look = time.monotonic()
    works = True
    while not is_over():
        received = signal.sigtimedwait(taken, max(0.0, min(next_look - time.monotonic(), WATCH_TICK_S)))
        if received is not None and received.si_signo in _ENDING:
            watcher.interrupted = True
            if job is None:
                return
            next_look = time.monotonic()  # node 0 learns it before ranks of other nodes fail for it
            if received.si_code != _SENT_BY_KERNEL:
                _pass_on(job, received.si_signo, passed_on)
        if received is not None and received.si_signo == _LOOK_NOW and works:
            works = _guarded(watcher.look_closely)
        if works and (time.monotonic() >= next_look or watcher.is_urgent()):
            works = _guarded(watcher.look)
            next_look = time.monotonic() + watcher.plan.look_s


def _blocked() -> Collection[int]:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return {number for number in (*_ENDING, _LOOK_NOW, signal.SIGCHLD) if number in blocked}


def _pass_on(job: int, number: int, passed_on: dict[int, float]) -> None:
    now = time.monotonic()
    if now - passed_on.get(number, -WATCH_FORWARD_S) >= WATCH_FORWARD_S:
        passed_on[number] = now
        try:
            os.kill(job, number)
        except ProcessLookupError:
            return


def _guarded(act: Callable[[], None]) -> bool:
    """Return False after a bug, which is reported: the job continues unwatched."""
    try:
        act()
    except Exception as error:  # whatever it is, it must not end the job
        write_error(
            f"a bug in ncclcheck, the job continues unwatched: {describe(error, save_traceback(error))}"
        )
        return False
    return True
