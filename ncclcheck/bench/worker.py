"""`python -m ncclcheck.bench.worker`: one rank of a benchmark, with its task as one JSON document on stdin.

Rank 0 writes each finished point as one line of JSON to standard output. What libraries print goes to standard error.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

from ncclcheck.bench.gpu.device import Device, open_device
from ncclcheck.bench.gpu.device_id import device_id
from ncclcheck.bench.groups.mesh_benchmark import measure_mesh
from ncclcheck.bench.parts_alone import isolate
from ncclcheck.bench.point import BenchRank, measure_all, prepare, with_agreed_buffers
from ncclcheck.bench.progress_page import ErrorKind, ProgressPage
from ncclcheck.bench.soak.soak_rank import run_soak
from ncclcheck.bench.task import NO_TORCH, WorkerTask
from ncclcheck.bench.turns import take_turns
from ncclcheck.exchange.store.torch_versions import is_own_bug, make_store
from ncclcheck.model.bench import Point
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Fact, Missing

_PR_SET_PDEATHSIG = 1  # prctl(2)
_INPUT_LIMIT_BYTES = 64 << 20
# "CUDA error: uncorrectable ECC error encountered" and the like (torch `c10/cuda/CUDAException.cpp`; AcceleratorError
# since 2.8), and NCCL's "unhandled cuda error" (`src/init.cc`, ncclGetErrorString): a GPU fails no other rank's call.
_OWN = ("out of memory", "can't allocate", "cuda error", "cuda driver error")


def main() -> int:
    """Run the task on stdin to its end. 0: done; 1: failed, and the progress page and stderr say why."""
    task = decode(sys.stdin.buffer.read(_INPUT_LIMIT_BYTES), WorkerTask)
    _die_with(task.agent_pid)
    _die_first()
    _leave_no_core()
    results = os.dup(1)
    os.dup2(2, 1)  # NCCL_DEBUG and others print to stdout
    progress = ProgressPage(task.progress_fd)
    try:
        _run(task, progress, results)
    except Exception as error:  # whatever it was, the agent must hear of it with the place where it happened
        text = str(error) if str(error).startswith(NO_TORCH) else f"{type(error).__name__}: {error}"
        progress.fail(_kind(error, progress), text)
        traceback.print_exc()
        return 1
    return 0


def _run(task: WorkerTask, progress: ProgressPage, results: int) -> None:
    progress.move("starting")
    try:
        import torch
        import torch.distributed as dist
    except Exception as error:
        raise RuntimeError(f"{NO_TORCH}: {type(error).__name__}: {error}") from error

    torch.set_num_threads(1)  # spinning threads of an idle pool would take the CPU from the transport
    device = open_device(task.plan.backend, task.local_rank, cuda_graph=task.plan.cuda_graph)
    if device.gpu is not None:
        progress.name_gpu(device.gpu.health.pci)
    rank = prepare(task, device, progress)
    _join(task, device, progress)
    rank = with_agreed_buffers(rank)
    if task.turns is not None:
        take_turns(rank, task.turns, _Turns(task))
    elif task.plan.soak is not None:
        run_soak(rank, task.plan.soak, partial(_write_all, results))
    else:
        points = []
        for point in measure_all(rank):
            points.append(point)
            if task.rank == 0:
                _write_all(results, encode(point) + b"\n")
        if task.plan.mesh is not None:
            mesh = measure_mesh(rank, task.plan.mesh)
            if task.rank == 0:
                _write_all(results, encode(mesh) + b"\n")
        if not task.brief:
            _isolate(rank, points, results)
    progress.move("leaving")
    _leave_together(progress)
    progress.move("done")
    dist.destroy_process_group()


def _isolate(rank: BenchRank, points: Sequence[Fact[Point]], results: int) -> None:
    found = isolate(rank, [point for point in points if not isinstance(point, Missing)])
    if rank.task.rank == 0:
        _write_all(results, encode(found) + b"\n")


class _Turns:
    """A connection of its own to the store, so that a long wait does not delay other calls of the store."""

    def __init__(self, task: WorkerTask) -> None:
        import torch.distributed as dist

        patience = timedelta(seconds=task.join_timeout_s)
        self._store = make_store(
            dist.TCPStore, task.store_host, task.store_port, is_master=False, timeout=patience
        )
        self._prefix, self._longest = task.turns_prefix, timedelta(seconds=task.timeout_s)

    def wait_for(self, key: str) -> bytes:
        self._store.wait([self._prefix + key], self._longest)
        return bytes(self._store.get(self._prefix + key))

    def set(self, key: str, value: bytes) -> None:
        self._store.set(self._prefix + key, value)


def _join(task: WorkerTask, device: Device, progress: ProgressPage) -> None:
    import torch
    import torch.distributed as dist

    progress.move("joining")
    progress.enter()
    store = make_store(
        dist.TCPStore,
        task.store_host,
        task.store_port,
        is_master=task.store_fd is not None,
        wait_for_workers=False,
        master_listen_fd=task.store_fd,
        timeout=timedelta(seconds=task.join_timeout_s),
    )
    dist.init_process_group(
        task.plan.backend,
        store=dist.PrefixStore(task.store_prefix, store),
        rank=task.rank,
        world_size=task.world_size,
        timeout=timedelta(seconds=task.timeout_s),
        **device_id(dist.init_process_group, torch.__version__, device.torch_device),
    )
    progress.leave(measured=False)


def _leave_together(progress: ProgressPage) -> None:
    import torch.distributed as dist

    progress.enter()
    try:
        dist.barrier()
    except (
        RuntimeError
    ):  # a rank that left a moment earlier closed its connections: everything is measured already
        traceback.print_exc()
    progress.leave(measured=False)


def _kind(error: Exception, progress: ProgressPage) -> ErrorKind:
    """Return whether a peer or the network may be at fault (an error of a collective call), or this rank itself."""
    text = str(error).lower()
    is_own = isinstance(error, MemoryError) or any(words in text for words in _OWN)
    is_own = is_own or is_own_bug(error)
    return "communication" if progress.inside and not is_own else "own"


def _die_with(agent_pid: int | None) -> None:
    """Let the kernel kill this process, even a stopped one, when its agent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if agent_pid is not None and os.getppid() != agent_pid:
        os._exit(1)  # it ended before the line above


def _die_first() -> None:
    """Make the kernel kill this process first where memory runs out, rather than a job (proc(5))."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _leave_no_core() -> None:
    """Write no core file when a rank aborts: with CUDA's mappings that takes minutes and fills a disk."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # torch's own tear-down takes time and may hang on a broken group
