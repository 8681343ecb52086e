"""A node's handle on the process that measures its pairs: start, give a task, poll, kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ncclcheck.bench.pairs.pair_server import MOVED, READY
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.bench.supervise import worker_environment
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.spawn.process import kill_all, read_available, state_letter
from ncclcheck.timeouts import KILL_WORKERS_S, PROCESS_POLL_S, WORKERS_START_S

_KEPT_BYTES, _SHOWN = 1 << 14, 300
_MOVED = MOVED.split()[0]
_STOPPED = "Tt"  # proc(5): by a signal, or by a debugger


class PairProcess:
    """The server of this node's pairs while it runs. A class because it is a process with pipes to be read.

    The kernel kills a child whose parent *thread* ended (prctl(2), PR_SET_PDEATHSIG), so a thread of this object starts
    it and lives until `stop`.
    """

    def __init__(self, environment: Mapping[str, str | None], *, on_nccl: bool) -> None:
        """Start it. Raises OSError where no process can be started."""
        self._ended, started = threading.Event(), threading.Event()
        self._failure: OSError | ValueError | None = None
        self.children: dict[int, int] = {}  # by rail
        self._rails = 1
        self._results: dict[int, PairResult] = {}  # by rail
        self._text, self._errors = b"", b""
        self.is_ready = False
        self.moved = 0  # how often its children advanced in this round

        def keep() -> None:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "ncclcheck.bench.pairs.pair_server"],
                    env=worker_environment(environment, on_nccl=on_nccl),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    bufsize=0,
                )
            except (OSError, ValueError) as error:
                self._failure = error
            started.set()
            self._ended.wait()

        threading.Thread(target=keep, name="pairs-parent", daemon=True).start()
        if not started.wait(WORKERS_START_S):
            self._failure = TimeoutError(f"it did not start within {WORKERS_START_S:.0f} s")
        if self._failure is not None:
            self._ended.set()
            raise OSError(f"the process that measures pairs: {self._failure}") from self._failure
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None  # noqa: S101 (both were asked for)
            os.set_blocking(pipe.fileno(), False)

    def begin(self, tasks: Sequence[PairTask]) -> None:
        """Measure a pair, each rail in a process of its own. Raises OSError where the server is gone."""
        assert self._process.stdin is not None  # noqa: S101 (it was asked for)
        self.children, self._results, self._rails = {}, {}, len(tasks)
        self.moved = 0
        self._process.stdin.write(b"".join(encode(task) + b"\n" for task in tasks))

    def poll(self, number: int) -> tuple[PairResult, ...]:
        """Return the results of that round, by rail, once all are there; else none.

        One with an error alone, where a child or the server ended.
        """
        self._read(number)
        if self._process.poll() is not None and len(self._results) < self._rails:
            why = f"the process that measures pairs ended: {self.last_words}"
            return (PairResult(number, error=why),)
        gone = [rail for rail, child in self.children.items() if not state_letter(child)]
        if gone:
            self._read(number)
        lost = next((rail for rail in gone if rail not in self._results), None)
        if lost is not None:
            return (PairResult(number, error=f"its process died: {self.last_words}", rail=lost),)
        failed = next((result for result in self._results.values() if result.error), None)
        if failed is not None:
            return (failed,)
        is_complete = len(self._results) == self._rails
        return tuple(self._results[rail] for rail in sorted(self._results)) if is_complete else ()

    def _read(self, number: int) -> None:
        """Read what was written since, and keep the results of that round."""
        assert self._process.stdout is not None and self._process.stderr is not None  # noqa: S101, PT018
        self._errors = (self._errors + read_available(self._process.stderr.fileno()))[-_KEPT_BYTES:]
        *lines, self._text = (self._text + read_available(self._process.stdout.fileno())).split(b"\n")
        for line in lines:
            if line + b"\n" == READY:
                self.is_ready = True
            elif line.startswith(_MOVED):
                self.moved += line + b"\n" == MOVED % number
            elif line.startswith(b"pid "):
                rail, child = line[4:].split()
                self.children[int(rail)] = int(child)
            else:
                with suppress(DecodeError):
                    result = decode(line, PairResult)
                    if result.number == number:
                        self._results[result.rail] = result

    def wait_until_ready(self, seconds: float) -> Missing | None:
        """Wait until torch is imported; return why it is not."""
        deadline = time.monotonic() + seconds
        while not self.is_ready:
            ended = self.poll(-1)
            if ended:
                return Missing("error", ended[0].error)
            if time.monotonic() > deadline:
                return Missing("timeout", f"torch was not imported within {seconds:.0f} s")
            time.sleep(PROCESS_POLL_S)
        return None

    @property
    def is_stopped(self) -> bool:
        """Return whether a child, or the server, is stopped by a signal."""
        pids = [self._process.pid, *self.children.values()]
        return any(state_letter(pid) in _STOPPED for pid in pids if state_letter(pid))

    @property
    def last_words(self) -> str:
        """Return the end of what it wrote to standard error."""
        return " ".join(self._errors.decode(errors="replace").split())[-_SHOWN:] or "without a word"

    def kill_children(self) -> None:
        """Kill what measures now; the server is ready for the next pair."""
        for child in self.children.values():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)

    def stop(self) -> None:
        """Kill all of it, and close the pipes."""
        if self._ended.is_set():
            return
        self.kill_children()
        kill_all([self._process], KILL_WORKERS_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._ended.set()
