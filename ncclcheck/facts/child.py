"""Runs a program that may wedge: in its own session, killed at its deadline, and abandoned if it will not die."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, TypeAlias

from msgspec import Struct

import ncclcheck
from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.model.fact import Missing

OUTPUT_LIMIT_BYTES = 1 << 20
Ending: TypeAlias = Literal["exited", "late", "too much", "enough"]

# A Popen that is dropped while its process lives would warn and be waited for by the next Popen.
_abandoned: list[subprocess.Popen[bytes]] = []

# -S and an explicit search path: the child finds what we find, and nothing that lies in the job's directory
# (a user's own `json.py` there must not replace the standard one).
_BOOT = (
    "import sys; from importlib import import_module;"
    "module, parent, path = sys.argv[1:4]; sys.argv[1:] = sys.argv[4:]; sys.path[:] = path.split('\\n');"
    "from ncclcheck.facts.orphan import die_with_parent; die_with_parent(int(parent));"
    "import_module(module).main()"
)

_SURVIVING_BOOT = (
    "import sys; from importlib import import_module;"
    "module, path = sys.argv[1:3]; sys.argv[1:] = sys.argv[3:]; sys.path[:] = path.split('\\n');"
    "import_module(module).main()"
)


class ChildResult(Struct, frozen=True):
    """A program that ended by itself: its return code (negative: the signal) and all it wrote."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run_child(
    argv: Sequence[str], *, deadline_s: float, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> ChildResult | Missing:
    """Return what `argv` wrote and returned, or why not; afterwards nothing of its process group runs.

    The one exception is a process that survives SIGKILL for a second (uninterruptible sleep): it is left, and named.
    """
    deadline = time.monotonic() + deadline_s
    try:
        process = start_child(argv, env, stdin)
    except (OSError, ValueError) as error:
        return missing_for(error, argv[0])
    output: dict[int, bytearray] = {}
    ending: Ending = "late"
    try:
        ending = read_child(process, output, deadline)
    finally:
        gone = end_child(process)
    return _result(process, [bytes(text) for text in output.values()], ending, gone, argv[0], deadline_s)


def run_python_child(
    module: str, arguments: Sequence[str], *, deadline_s: float, env: Mapping[str, str] | None = None
) -> ChildResult | Missing:
    """Return the same for `main()` of one of our modules, in a new interpreter with this one's search path.

    It is killed by the kernel when we die, so that nothing it holds open outlives us.
    """
    result = run_child(python_command(module, arguments), deadline_s=deadline_s, env=env)
    if isinstance(result, Missing):
        return Missing(result.missing, result.detail.replace(sys.executable, module, 1))
    return result


def python_command(module: str, arguments: Sequence[str]) -> list[str]:
    """Return the command of such an interpreter; the kernel kills it when the thread that starts it ends."""
    own_root = str(Path(ncclcheck.__file__).parents[1])
    search_path = "\n".join([*(entry for entry in sys.path if entry), own_root])
    return [sys.executable, "-S", "-c", _BOOT, module, str(os.getpid()), search_path, *arguments]


def surviving_command(module: str, arguments: Sequence[str]) -> list[str]:
    """Return the same for a program that cleans up and ends by itself: the kernel does not kill it with its parent."""
    own_root = str(Path(ncclcheck.__file__).parents[1])
    search_path = "\n".join([*(entry for entry in sys.path if entry), own_root])
    return [sys.executable, "-S", "-c", _SURVIVING_BOOT, module, search_path, *arguments]


def start_child(
    argv: Sequence[str], env: Mapping[str, str] | None, stdin: bytes = b""
) -> subprocess.Popen[bytes]:
    """Return the program, started in a session of its own; `end_child` must follow. Raises OSError or ValueError."""
    source: int | IO[bytes] = subprocess.DEVNULL
    if stdin:  # a memory file needs no writer, as a pipe would
        source = os.fdopen(os.memfd_create("stdin"), "w+b")
        source.write(stdin)
        source.seek(0)
    try:
        return subprocess.Popen(
            list(argv),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    finally:
        if not isinstance(source, int):
            source.close()


def read_child(
    process: subprocess.Popen[bytes],
    output: dict[int, bytearray],
    deadline: float,
    is_enough: Callable[[bytes], bool] = lambda _: False,
) -> Ending:
    """Fill `output` (stdout, then stderr) until the program has exited and nothing more is in the pipes.

    Or until `is_enough` of what it has written to stdout.

    The end of the pipes is not waited for: a grandchild that keeps them open must not keep us.
    """
    with selectors.DefaultSelector() as selector:
        for stream in _pipes(process):
            os.set_blocking(stream.fileno(), False)
            output[stream.fileno()] = bytearray()
            selector.register(stream.fileno(), selectors.EVENT_READ)
        exit_descriptor = _exit_descriptor(process.pid)
        if exit_descriptor is not None:
            selector.register(exit_descriptor, selectors.EVENT_READ)
        try:
            while (remaining := deadline - time.monotonic()) > 0:
                exited = _has_exited(process.pid)
                events = selector.select(min(remaining, 0 if exited else timeouts.CHILD_POLL_S))
                readable = [key.fd for key, _ in events if key.fd in output]
                for descriptor in readable:
                    if not _read_some(descriptor, output[descriptor]):
                        selector.unregister(descriptor)
                    if len(output[descriptor]) > OUTPUT_LIMIT_BYTES:
                        return "too much"
                if readable and is_enough(bytes(next(iter(output.values())))):
                    return "enough"
                if exited and not readable:
                    return "exited"
        finally:
            if exit_descriptor is not None:
                os.close(exit_descriptor)
    return "late"


def _read_some(descriptor: int, buffer: bytearray) -> bool:
    try:
        data = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return True
    buffer += data
    return bool(data)


def _exit_descriptor(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process exits; None before Linux 5.3, where we poll."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def _has_exited(pid: int) -> bool:
    """Return whether the process is dead.

    It is not reaped, so that its group's number stays taken until we killed it.
    """
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def end_child(process: subprocess.Popen[bytes]) -> bool:
    """Kill what is left of the process group and reap the child; False when it is still there after a second."""
    # Nothing left, or only what changed its user: either way there is no more that we may do.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(timeouts.CHILD_DYING_S)
    except subprocess.TimeoutExpired:
        _abandoned.append(process)
    for stream in _pipes(process):
        stream.close()
    return process.returncode is not None


def _pipes(process: subprocess.Popen[bytes]) -> list[IO[bytes]]:
    return [stream for stream in (process.stdout, process.stderr) if stream is not None]


def _result(
    process: subprocess.Popen[bytes],
    output: list[bytes],
    ending: Ending,
    gone: bool,
    name: str,
    deadline_s: float,
) -> ChildResult | Missing:
    left = "" if gone else f"; it survived SIGKILL and was left behind as process {process.pid}"
    match ending:
        case "late":
            return Missing("timeout", f"{name}: no answer within {deadline_s:g} s{left}")
        case "too much":
            return Missing("error", f"{name}: wrote more than {OUTPUT_LIMIT_BYTES} bytes{left}")
    if not gone:
        return Missing("error", f"{name}: ended, but could not be reaped{left}")
    return ChildResult(process.returncode, output[0], output[1])
