"""Where the data live and how a call is timed there: the only difference between gloo and nccl."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ncclcheck.bench.collectives import CPU_POOL_BYTES, GPU_POOL_BYTES
from ncclcheck.bench.progress import ProgressPage
from ncclcheck.model.bench import Backend

if TYPE_CHECKING:
    import torch

Calls: TypeAlias = Sequence[tuple[int, Callable[[], None]]]  # (iteration, the call)
_HOLD_CYCLES = 20_000_000  # about 10 ms at 2 GHz: longer than it takes to enqueue 32 calls
_POLL_S = 0.00005


class Device(Struct, frozen=True):
    """One place to measure. `time_calls` makes the calls back to back and returns the microseconds of each."""

    torch_device: torch.device
    pool_bytes: int
    periods_at_once: int
    time_calls: Callable[[Calls, ProgressPage], list[float]]
    synchronize: Callable[[], None]


def open_device(backend: Backend, local_rank: int) -> Device:
    """The device of this rank: CPU memory for gloo, GPU number `local_rank` for nccl, which is then current."""
    import torch

    if backend == "gloo":
        return Device(torch.device("cpu"), CPU_POOL_BYTES, 1, _time_on_cpu, lambda: None)
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return Device(device, GPU_POOL_BYTES, 1024, _time_on_gpu, torch.cuda.synchronize)


def _time_on_cpu(calls: Calls, progress: ProgressPage) -> list[float]:
    times_us = []
    for iteration, call in calls:
        progress.enter(iteration)
        began = time.perf_counter_ns()
        call()
        ended = time.perf_counter_ns()
        progress.leave()
        times_us.append((ended - began) / 1e3)
    return times_us


def _time_on_gpu(calls: Calls, progress: ProgressPage) -> list[float]:
    """Enqueue everything behind a kernel that holds the stream, so that launching is not what is timed.

    Method of NVIDIA/nvbandwidth `memcpy.cpp` (spin kernel), with torch's own spin kernel. Progress is seen by polling
    the end event of each call, since the host does not wait inside the calls.
    """
    import torch

    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in calls]
    progress.enter(calls[0][0])
    torch.cuda._sleep(_HOLD_CYCLES)
    for (began, ended), (_, call) in zip(events, calls, strict=True):
        began.record()
        call()
        ended.record()
    for number, ((_, ended), (iteration, _)) in enumerate(zip(events, calls, strict=True)):
        if number:
            progress.enter(iteration)
        while not ended.query():
            time.sleep(_POLL_S)
        progress.leave()
    return [began.elapsed_time(ended) * 1e3 for began, ended in events]
