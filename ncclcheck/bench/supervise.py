"""The workers of this node: started, watched without blocking, and killed within a bound."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import IO

from msgspec.structs import replace

import ncclcheck
from ncclcheck import timeouts
from ncclcheck.bench.culprits import RankState
from ncclcheck.bench.nccl_log import NcclLog, read_logs, with_log
from ncclcheck.bench.progress_page import new_page, read_page
from ncclcheck.bench.stderr_cause import last_words, reason
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.tcp_connections import unanswered_peers
from ncclcheck.model.bench import BenchPlan, Isolation, Point
from ncclcheck.model.benchmarks.mesh_bench import MeshBench
from ncclcheck.model.benchmarks.soak import SoakBlock
from ncclcheck.model.codec import decode, decode_fact, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.spawn.process import kill_all, read_available, start_process, state_letter

_STDERR_KEPT_BYTES, _STDERR_SHOWN = 1 << 16, 8192  # the frames of an abort of torch take more than 8 KiB
_LAST_WORDS = 400
_ERROR_TEXT = 600
_DEFAULTS = {"TORCH_CPP_LOG_LEVEL": "ERROR", "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
# The watchdog then aborts no rank whose peer is gone: the agent sees who went, and ends the rest (torch
# `ProcessGroupNCCL.hpp`, ErrorHandlingMode NoHandling, 2.2 to 2.13).
_NCCL_DEFAULTS = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}


class _Worker:
    """One worker process. A class because its pipes are read piece by piece."""

    def __init__(self, task: WorkerTask, environment: Mapping[str, str]) -> None:
        self.task = task
        self.page = new_page(f"ncclcheck-rank-{task.rank}")
        task_with_page = replace(task, agent_pid=os.getpid(), progress_fd=self.page)
        self.nccl_log = NcclLog(task.rank) if task.plan.backend == "nccl" else None
        inherited = [self.page] if task.store_fd is None else [self.page, task.store_fd]
        if self.nccl_log is not None:
            environment = with_log(environment, self.nccl_log)
            inherited.append(self.nccl_log.descriptor)
        argv = [sys.executable, "-m", "ncclcheck.bench.worker"]
        self.started = time.monotonic()
        try:
            self.process: subprocess.Popen[bytes] = start_process(
                argv, environment, encode(task_with_page), inherited
            )
        except ValueError as error:  # a zero byte in the environment
            self._close_memory()
            raise OSError(f"worker of rank {task.rank}: {error}") from error
        except OSError:
            self._close_memory()
            raise
        self.failed_at: float | None = None
        self._unanswered: tuple[str, ...] = ()
        self._looked_at = self._found_at = 0.0
        self.errors = b""
        self.isolation: Isolation | None = None
        self.mesh: MeshBench | None = None
        self._line = b""

    def new_points(self) -> list[Fact[Point | SoakBlock]]:
        """Return the points, or blocks of a soak, written since the last call, and read its standard error.

        Missing in the place of one that the backend refused.
        """
        self.errors = (self.errors + _drain(self.process.stderr))[-_STDERR_KEPT_BYTES:]
        *lines, self._line = (self._line + _drain(self.process.stdout)).split(b"\n")
        points: list[Fact[Point | SoakBlock]] = []
        for line in lines:
            found = _result(line)
            if isinstance(found, Isolation):
                self.isolation = found
            elif isinstance(found, MeshBench):
                self.mesh = found
            elif isinstance(found, DecodeError):
                self.errors += f"\nunreadable result line: {found}\n".encode()
            else:
                points.append(found)
        return points

    def state(self) -> RankState:
        """Return where the rank is."""
        now, task, progress = time.monotonic(), self.task, read_page(self.page)
        exit_code = self.process.poll()
        if self.failed_at is None and (exit_code is not None or progress.error_kind != "none"):
            self.failed_at = now
        points = points_of(task.plan)
        op, size_bytes = points[progress.point] if 0 <= progress.point < len(points) else ("", 0)
        if progress.phase == "starting":
            size_bytes = max(task.plan.sizes_bytes)
        last = progress.stamp_ns / 1e9 if progress.stamp_ns else self.started
        idle_s = max(0.0, now - last)
        hangs = exit_code is None and idle_s > timeouts.CONNECTIONS_AFTER_S
        if self.nccl_log is not None:
            self.nccl_log.follow(progress.stamp_ns)
        return RankState(
            rank=task.rank,
            host=task.hosts[task.rank],
            pid=self.process.pid,
            stat="" if exit_code is not None else state_letter(self.process.pid),
            exit_code=exit_code,
            ended_s=round(now - self.failed_at, 3) if self.failed_at is not None else 0.0,
            phase=progress.phase,
            op=op,
            size_bytes=size_bytes,
            iteration=progress.iteration,
            inside=progress.inside,
            calls=progress.calls,
            idle_s=round(idle_s, 3),
            longest_call_s=round(progress.longest_call_ns / 1e9, 6),
            error_kind=progress.error_kind,
            error=progress.error[:_ERROR_TEXT],
            last_words=self._last_words() if exit_code else self._words_of_a_hang() if hangs else "",
            unanswered=self._unanswered_now(now) if progress.inside and hangs else (),
            gpu=progress.gpu,
            gpu_pci=progress.gpu_pci,
        )

    def _last_words(self) -> str:
        """Return NCCL's warnings of its log, and the end of its standard error."""
        warnings = self.nccl_log.warnings() if self.nccl_log is not None else ""
        words = last_words(self.errors.decode(errors="replace"), _LAST_WORDS)
        return (warnings + words)[-_LAST_WORDS:]

    def _words_of_a_hang(self) -> str:
        """Return what NCCL warned of since it made no progress, and the error that torch's watchdog saw.

        torch raises neither where it does not handle errors (TORCH_NCCL_ASYNC_ERROR_HANDLING=0): the call just hangs.
        """
        if self.nccl_log is None:
            return ""
        seen = reason(self.errors.decode(errors="replace"), _LAST_WORDS)
        return (self.nccl_log.warnings(since_progress=True) + seen)[-_LAST_WORDS:]

    def _unanswered_now(self, now: float) -> tuple[str, ...]:
        if now - self._looked_at >= 1.0:
            self._looked_at, found = now, unanswered_peers(self.process.pid)
            if found or now - self._found_at > timeouts.CONNECTIONS_KEPT_S:
                self._unanswered, self._found_at = found, now
        return self._unanswered

    def _close_memory(self) -> None:
        os.close(self.page)
        if self.nccl_log is not None:
            self.nccl_log.close()

    def close(self) -> None:
        """Close its page, log and pipes: nothing more is known of it afterwards."""
        self._close_memory()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Running:
    """The workers of this node while they run. A class because they are processes, pipes and a thread to be ended.

    The kernel kills a child whose parent *thread* ended (prctl(2), PR_SET_PDEATHSIG), so a thread of this object starts
    the workers and lives until `stop`, whichever thread the caller uses.
    """

    def __init__(self, tasks: Sequence[WorkerTask], environment: Mapping[str, str]) -> None:
        """Start a worker for each task. Raises OSError when a process cannot be started; none is left then."""
        self.transport: Fact[tuple[Process, ...]] = Missing("absent", "no NCCL log was kept")  # after `stop`
        self._workers: list[_Worker] = []
        self._ended = threading.Event()
        ready, failure = threading.Event(), list[OSError]()

        def keep() -> None:
            try:
                with closing(_store_listener(tasks)) as listener:
                    for task in tasks:
                        self._workers.append(_Worker(_meeting_at(listener, task), environment))
            except OSError as error:
                failure.append(error)
            ready.set()
            self._ended.wait()

        threading.Thread(target=keep, name="workers-parent", daemon=True).start()
        if not ready.wait(timeouts.WORKERS_START_S):
            failure.append(
                TimeoutError(f"starting {len(tasks)} workers took more than {timeouts.WORKERS_START_S:.0f} s")
            )
        if failure:
            self.stop(1.0)
            raise failure[0]

    def poll(self) -> tuple[list[Fact[Point | SoakBlock]], tuple[RankState, ...]]:
        """Return the points finished since the last call, and where every rank of this node is. Never blocks.

        Nothing after `stop`.
        """
        if self._ended.is_set():
            return [], ()
        states = tuple(
            worker.state() for worker in self._workers
        )  # first: what an ended one said is in its pipes
        points = [point for worker in self._workers for point in worker.new_points()]
        for worker in self._workers:
            if worker.nccl_log is not None:
                worker.nccl_log.bound()
        return points, states

    @property
    def isolation(self) -> Isolation | None:
        """Return how fast ranks and links are alone, once rank 0 has said it, if it runs on this node."""
        return next((worker.isolation for worker in self._workers if worker.isolation is not None), None)

    @property
    def mesh(self) -> MeshBench | None:
        """Return what was measured in the parallel groups, once rank 0 has said it, if it runs on this node."""
        return next((worker.mesh for worker in self._workers if worker.mesh is not None), None)

    def log(self, rank: int) -> str:
        """Return the last 8 KiB that the rank wrote to standard error."""
        errors = next((worker.errors for worker in self._workers if worker.task.rank == rank), b"")
        return errors[-_STDERR_SHOWN:].decode(errors="replace")

    def stop(self, grace_s: float) -> tuple[str, ...]:
        """Kill every worker, and return those that did not die within `grace_s`: they hang in the kernel."""
        if self._ended.is_set():
            return ()
        undead = kill_all([worker.process for worker in self._workers], grace_s)
        names = tuple(
            f"rank {worker.task.rank} (pid {worker.process.pid}, state {state_letter(worker.process.pid)})"
            for worker in self._workers
            if worker.process in undead
        )
        logs = [worker.nccl_log for worker in self._workers if worker.nccl_log is not None]
        if logs:
            self.transport = read_logs(logs, self._workers[0].task.hosts[self._workers[0].task.rank])
        for worker in self._workers:
            worker.close()
        self._ended.set()
        return names


def start(tasks: Sequence[WorkerTask], environment: Mapping[str, str | None]) -> Running:
    """Start the workers of `tasks`, one per local rank.

    They get this process's environment changed by `environment` (None: unset). `stop` must be called in the end.
    """
    return Running(tasks, worker_environment(environment, on_nccl=_on_nccl(tasks)))


def worker_environment(environment: Mapping[str, str | None], *, on_nccl: bool) -> dict[str, str]:
    """Return the environment of a process that measures: this process's own, changed by `environment`."""
    defaults = {**_DEFAULTS, **_NCCL_DEFAULTS} if on_nccl else _DEFAULTS
    merged = {**defaults, **os.environ, **environment}
    merged["PYTHONPATH"] = _python_path(os.environ.get("PYTHONPATH", ""))
    return {name: value for name, value in merged.items() if value is not None}


def _on_nccl(tasks: Sequence[WorkerTask]) -> bool:
    return any(task.plan.backend == "nccl" for task in tasks)


def _store_listener(tasks: Sequence[WorkerTask]) -> socket.socket:
    """Listen where rank 0 serves the store, for the ranks of this node: those that come before the store wait."""
    listener = socket.socket()
    if any(not task.store_port for task in tasks):
        listener.bind(("127.0.0.1", 0))
        listener.listen(len(tasks) + 1)
    return listener


def _meeting_at(listener: socket.socket, task: WorkerTask) -> WorkerTask:
    if task.store_port:
        return task
    host, port = listener.getsockname()
    return replace(
        task, store_host=host, store_port=port, store_fd=listener.fileno() if task.rank == 0 else None
    )


def not_started(tasks: Sequence[WorkerTask], error: OSError) -> tuple[RankState, ...]:
    """Return the states of ranks whose processes could not be started, so that their node is named with the reason."""
    return tuple(
        RankState(
            rank=task.rank, host=task.hosts[task.rank], pid=0, stat="", exit_code=None, ended_s=0.0,
            phase="starting", op="", size_bytes=0, iteration=0, inside=False, calls=0, idle_s=0.0,
            longest_call_s=0.0, error_kind="own", error=f"its process could not be started: {error}",
        )
        for task in tasks
    )  # fmt: skip


def _python_path(present: str) -> str:
    """Return the PYTHONPATH under which the workers find this very package, also when it runs from a checkout."""
    parent = Path(ncclcheck.__file__).resolve().parent.parent
    if parent.name in ("site-packages", "dist-packages"):
        return present
    return os.pathsep.join(filter(None, (present, str(parent))))


def _result(line: bytes) -> Fact[Point | SoakBlock] | Isolation | MeshBench | DecodeError:
    with suppress(DecodeError):
        return decode(line, SoakBlock)
    try:
        return decode_fact(line, Point)
    except DecodeError as error:
        with suppress(DecodeError):
            return decode(line, Isolation)
        with suppress(DecodeError):
            return decode(line, MeshBench)
        return error


def points_of(plan: BenchPlan) -> list[tuple[str, int]]:
    """Return what the numbers mean under which ranks say where they are: the op, in words, and its size."""
    points: list[tuple[str, int]] = [(op, size) for op in plan.ops for size in plan.sizes_bytes]
    if plan.mesh is not None:
        points += [
            (f"{call.op} in the groups of {call.dimension}", call.size_bytes) for call in plan.mesh.calls
        ]
        points.append(("the mix of all groups", max(call.size_bytes for call in plan.mesh.calls)))
    return points


def _drain(pipe: IO[bytes] | None) -> bytes:
    return read_available(pipe.fileno()) if pipe is not None and not pipe.closed else b""
