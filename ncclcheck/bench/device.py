"""Where the data live and how a call is timed there: the only difference between gloo and nccl."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.data import PERIOD
from ncclcheck.bench.footprint import CPU_POOL_BYTES, GPU_POOL_BYTES
from ncclcheck.bench.progress import ProgressPage
from ncclcheck.model.bench import Backend

if TYPE_CHECKING:
    import torch

Call: TypeAlias = Callable[[], object]
Calls: TypeAlias = Sequence[tuple[int, Call]]  # (iteration, the call)
_HOLD_CYCLES = 20_000_000  # about 10 ms at 2 GHz: longer than it takes to enqueue 32 calls
_GPU_COMPARED = 1 << 24  # elements


class Device(Struct, frozen=True):
    """A device on which collectives are measured.

    `time_calls` makes the calls back to back and returns the microseconds of each. `record` turns a call that was made
    once into the one to be timed. After `evict` no buffer is in the cache. `compared_at_once` elements are verified in
    one operation.
    """

    torch_device: torch.device
    pool_bytes: int
    compared_at_once: int
    time_calls: Callable[[Calls, ProgressPage], list[float]]
    synchronize: Callable[[], None]
    record: Callable[[Call], Call] = lambda call: call
    evict: Callable[[], object] = lambda: None


def open_device(backend: Backend, local_rank: int, *, cuda_graph: bool = False) -> Device:
    """Return the device of this rank: CPU memory for gloo, GPU `local_rank` for nccl, which becomes the current one."""
    import torch

    if backend == "gloo":
        return Device(torch.device("cpu"), CPU_POOL_BYTES, PERIOD, _time_on_cpu, lambda: None)
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    cache = torch.zeros(GPU_POOL_BYTES, dtype=torch.uint8, device=device)
    plain = Device(
        device, GPU_POOL_BYTES, _GPU_COMPARED, _time_on_gpu, torch.cuda.synchronize, evict=cache.zero_
    )
    return replace(plain, record=_captured) if cuda_graph else plain


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
            time.sleep(timeouts.CUDA_EVENT_POLL_S)
        progress.leave()
    return [began.elapsed_time(ended) * 1e3 for began, ended in events]


def _captured(call: Call) -> Call:
    """Return the call as a CUDA graph of its own, whose replay does the same on the same buffers.

    Capture is thread-local: torch's watchdog of the group may query events of other work meanwhile, which the default
    mode forbids (PyTorch, `torch.cuda.graph`, capture_error_mode).
    """
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        call()
    return partial(torch.cuda.CUDAGraph.replay, graph)
