"""What this process got from the one that started it, and COMMAND gets from this one: exactly the same."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

# Python ignores these when it starts, whatever they were before, and exec would hand that on.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# A shell that was started with a signal ignored, or that ignores it (trap ''), starts its commands so.
_SHELLS = frozenset({"sh", "ash", "bash", "busybox", "dash", "ksh", "mksh", "zsh"})


class Inherited(Struct, frozen=True):
    """The descriptors that were open, the limit of open files, and which of Python's ignored signals were so before."""

    descriptors: frozenset[int]
    open_files: tuple[int, int]
    ignored: frozenset[int]


def inherited() -> Inherited:
    """Return what this process has now. Call it before anything is opened or raised."""
    return Inherited(_descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE), _ignored_by_shell())


def hand_over(inherited: Inherited) -> None:
    """Make this process what it was when it started: the next thing is exec."""
    _reap()
    for descriptor in _descriptors() - inherited.descriptors:
        with suppress(OSError):
            os.set_inheritable(descriptor, False)
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_IGN if number in inherited.ignored else signal.SIG_DFL)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, inherited.open_files)


def _descriptors() -> frozenset[int]:
    try:
        return frozenset(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208 (names only)
    except OSError:
        return frozenset(range(3))


def _ignored_by_shell() -> frozenset[int]:
    """Return the signals that were ignored before Python did, which is only certain if a shell is the parent."""
    with suppress(OSError, ValueError, IndexError):
        parent = Path(f"/proc/{os.getppid()}")
        if Path(os.readlink(parent / "exe")).name not in _SHELLS:  # noqa: PTH115 (its text, not its target)
            return frozenset()
        status = (parent / "status").read_text(errors="replace")
        mask = int(status.partition("SigIgn:")[2].split()[0], 16)
        return frozenset(int(number) for number in _IGNORED_BY_PYTHON if mask >> (number - 1) & 1)
    return frozenset()


def _reap() -> None:
    """Children of ours that have ended are no business of COMMAND, nor is their signal where it is blocked."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    if signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        signal.sigtimedwait({signal.SIGCHLD}, 0)
