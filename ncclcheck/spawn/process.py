"""Starting child processes that die with this one, watching them, and killing them within a bound."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ncclcheck import timeouts

_PRCTL = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def start_process(
    argv: Sequence[str], environment: Mapping[str, str], stdin: bytes, inherit: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, so that no signal of a terminal reaches it, with pipes that never block.

    `stdin` is laid in memory first: the child need not read it for us to go on. `inherit` are descriptors it keeps.
    """
    source = os.memfd_create("stdin", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(source), "wb") as writer:
            writer.write(stdin)
        os.lseek(source, 0, os.SEEK_SET)
        process = subprocess.Popen(
            list(argv),
            env=dict(environment),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=tuple(inherit),
            start_new_session=True,
            bufsize=0,
        )
    finally:
        os.close(source)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
    return process


def end_with_parent() -> None:
    """Let the kernel send SIGTERM to this process when the thread that started it ends (prctl(2)); for `preexec_fn`.

    Between fork and exec of a process with threads nothing may be done but this: a system call through a function that
    was looked up before.
    """
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def raise_file_limit(needed: int) -> int:
    """Raise the limit of open files to `needed`, or to the hard limit; return the soft limit before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):  # a container may forbid it: some hosts are then not started
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft


def read_available(descriptor: int, limit_bytes: int = 1 << 20) -> bytes:
    """Return what lies in a non-blocking pipe, at most `limit_bytes`; nothing at its end."""
    parts = []
    while limit_bytes > 0:
        try:
            part = os.read(descriptor, min(limit_bytes, 65536))
        except (BlockingIOError, InterruptedError):
            break
        if not part:
            break
        parts.append(part)
        limit_bytes -= len(part)
    return b"".join(parts)


def state_letter(pid: int) -> str:
    """Return the kernel's one-letter state of a process (proc(5): R S D T t Z ...), or "" when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]  # the name in parentheses may hold anything


def kill_all(processes: Iterable[subprocess.Popen[bytes]], grace_s: float) -> list[subprocess.Popen[bytes]]:
    """Send SIGKILL to the process group of each, also of stopped ones, and wait at most `grace_s`.

    Returns those that did not die: they hang in the kernel (state D), and no signal will end them.
    """
    living = [process for process in processes if process.poll() is None]
    for process in living:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + grace_s
    while True:
        living = [process for process in living if process.poll() is None]
        if not living or time.monotonic() >= deadline:
            return living
        time.sleep(timeouts.PROCESS_POLL_S)
