"""Starting the user's own job as a child that gets what this process got, following it, and ending as it ended."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from msgspec import Struct

from ncclcheck.spawn.process import state_letter
from ncclcheck.timeouts import PROCESS_POLL_S

# Python ignores these when it starts, and a child would inherit that.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_SEEN = 1 << 8  # the status of a process that ended with exit code 1


class JobCommand(Struct, frozen=True):
    """The program file, its words and environment, and what this process was started with.

    `streams`: which of our descriptors the job gets as which of its own; it shares the others.
    """

    program: str
    words: Sequence[str]
    environ: Mapping[str, str]
    mask: Collection[int] = ()
    ignored: Collection[int] = ()
    streams: Mapping[int, int] = {}


def start_job(command: JobCommand) -> int:
    """Start the job and return its process id. It shares our streams, terminal, process group and limits.

    Raises OSError where the kernel does not start it. It does not end when this process does.
    """
    defaults = [number for number in _IGNORED_BY_PYTHON if number not in command.ignored]
    return os.posix_spawn(
        command.program,
        list(command.words),
        dict(command.environ),
        file_actions=[(os.POSIX_SPAWN_DUP2, source, number) for number, source in command.streams.items()],
        setsigmask=[signal.Signals(number) for number in command.mask],
        setsigdef=defaults,
    )


def ended_status(pid: int) -> int | None:
    """Return the status (wait(2)) of our child, or None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return NOT_SEEN  # somebody else has collected it: no success is made of that
    return status if ended else None


def exit_code_of(status: int) -> int:
    """Return the code as a shell has it: 128 and the signal where a signal ended the process."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def end_alike(status: int) -> NoReturn:
    """End this process as the job ended, by the same signal too, so that our parent sees no difference."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core of interest is the job's own
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(exit_code_of(status))


def end_processes(pids: Iterable[int], grace_s: float) -> None:
    """Send SIGTERM to these processes, wait at most `grace_s` for them to end, and send SIGKILL to the rest.

    A stopped process is continued, so that it can end by itself.
    """
    living = [pid for pid in pids if pid > 1]
    for number in (signal.SIGTERM, signal.SIGCONT):
        for pid in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
    deadline = time.monotonic() + grace_s
    while living and time.monotonic() < deadline:
        time.sleep(PROCESS_POLL_S)
        living = [pid for pid in living if _lives(pid)]
    for pid in living:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _lives(pid: int) -> bool:
    return state_letter(pid) not in ("", "Z", "X")
