"""A command running on a node: its output files, its end, its signals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tests.lab.forked import Forked, Place, Program
from tests.lab.forked import start as fork
from tests.lab.namespaces import inside

# What every process of a node does first: take its host name and its own /dev/shm, then become the command.
_TAKE = 'hostname "$1" && mount --bind "$2" /dev/shm && shift 2 && exec "$@"'
_ENTER = ("unshare", "--uts", "sh", "-c", _TAKE, "sh")


class Finished(Struct, frozen=True):
    """How a command ended. `returncode` is negative for a signal, as in `subprocess`."""

    node: str
    returncode: int
    stdout: str
    stderr: str
    seconds: float  # from its start to its end
    timed_out: bool  # it was killed at the deadline of the caller

    def __str__(self) -> str:
        ended = f"killed after {self.seconds:.1f} s" if self.timed_out else f"exit {self.returncode}"
        return f"[{self.node}: {ended}]\n{self.stdout}\n--- stderr\n{self.stderr}"


class Running:
    """A process of the lab and its process group.

    State: the process (running, or ended and reaped), its two output files, and the time it ended.
    """

    def __init__(self, place: Place, program: Program, output: Path, *, fresh: bool = False) -> None:
        self.node = place.name
        self.argv = tuple(program.argv)
        self._stdout, self._stderr = output.with_suffix(".out"), output.with_suffix(".err")
        self._ended: float | None = None
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self._started = time.monotonic()
            if not fresh and program.can_fork():
                with Path(os.devnull).open("rb") as stdin:
                    streams = (stdin.fileno(), stdout.fileno(), stderr.fileno())
                    forked = fork(place, program, streams)
                self._process: Forked | subprocess.Popen[bytes] = forked
                self._end_event = forked.pidfd
                return
            self._process = subprocess.Popen(
                [*inside(place.namespace, _ENTER), place.name, str(place.shm), *program.argv],
                env=dict(program.env),
                cwd=program.cwd,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                pass_fds=tuple(program.pass_fds),
            )
            self._end_event = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        """Process id of the command itself (`ip`, `unshare` and `sh` become it), and of its process group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the command has not ended yet."""
        return self._process.poll() is None

    @property
    def stdout(self) -> str:
        """What it printed so far."""
        return self._stdout.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """What it said on standard error so far."""
        return self._stderr.read_text(errors="replace")

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send a signal to the command, or to its whole process group. Nothing happens once it has ended."""
        try:
            if group:
                os.killpg(self.pid, number)
            elif self.alive:
                self._process.send_signal(number)
        except ProcessLookupError:
            pass

    def wait(self, timeout_s: float) -> Finished:
        """Its end. A command that is still running after `timeout_s` is killed with its process group."""
        return wait_all([self], timeout_s)[0]

    def stop(self, *, grace_s: float = 5.0) -> Finished:
        """Ask it to end (SIGTERM), and kill it and its process group if it does not within `grace_s`."""
        self.signal(signal.SIGTERM)
        return self.wait(grace_s)

    def wait_for(self, text: str, timeout_s: float) -> None:
        """Return once its output contains `text`. Raises AssertionError when it ends, or the time does, before that."""
        deadline = time.monotonic() + timeout_s
        while text not in self.stdout + self.stderr:
            if not self.alive or time.monotonic() > deadline:
                if text in self.stdout + self.stderr:
                    return
                state = "is running" if self.alive else "has ended"
                raise AssertionError(
                    f"{self.argv} {state} and did not print {text!r}:\n{self.stdout}{self.stderr}"
                )
            select.select([self._end_event], [], [], 0.02)

    def _reap(self, at: float, *, timed_out: bool) -> Finished:
        if self._ended is None:
            self._process.wait()
            self._ended = at
            os.close(self._end_event)
        seconds = self._ended - self._started
        return Finished(self.node, self._process.wait(), self.stdout, self.stderr, seconds, timed_out)


def wait_all(running: Sequence[Running], timeout_s: float) -> list[Finished]:
    """The ends of all, in their order; those still running after `timeout_s` are killed, with their groups."""
    deadline = time.monotonic() + timeout_s
    waiting = {process._end_event: process for process in running if process._ended is None}
    timed_out: set[Running] = set()
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0 and timed_out:
            raise AssertionError(
                f"still there 10 s after SIGKILL: {[process.argv for process in waiting.values()]}"
            )
        if left <= 0:
            timed_out.update(waiting.values())
            for process in timed_out:
                process.signal(signal.SIGKILL, group=True)
            deadline, left = time.monotonic() + 10, 10
        for event in select.select(list(waiting), [], [], left)[0]:
            waiting.pop(event)._reap(time.monotonic(), timed_out=False)
    return [process._reap(0, timed_out=process in timed_out) for process in running]
