"""Where the data live and how a call is timed there: the only difference between gloo and nccl."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.data import PERIOD
from ncclcheck.bench.footprint import CPU_POOL_BYTES, GPU_POOL_BYTES
from ncclcheck.bench.gpu.gpu_health import HealthWatch, cuda_address, pynvml
from ncclcheck.bench.gpu.gpu_parts import GpuParts, gpu_parts
from ncclcheck.bench.gpu.gpu_pulse import GpuPulse
from ncclcheck.bench.gpu.gpu_timer import Call as Call
from ncclcheck.bench.gpu.gpu_timer import Calls as Calls
from ncclcheck.bench.gpu.gpu_timer import Conditions, GpuTimer, captured
from ncclcheck.bench.progress_page import ProgressPage
from ncclcheck.model.bench import Backend

if TYPE_CHECKING:
    import torch

_GPU_COMPARED = 1 << 24  # elements
# An event between two calls takes about a microsecond of the stream. nccl-tests has none (2.19.6 `src/common.cu`,
# BenchTime), at any size. Its figures are to be met within 1 % from 1 MiB on, so loops cannot end at 1 MiB (a call
# takes 20 to 40 us there): it has to take 100 us, and on the fastest NVLink (882 GB/s of bus bandwidth on 16 GB200, see
# `measure/reference.toml`: 470 GB/s of data) that is 47 MB.
_LOOP_BYTES = 64 << 20


class Device(Struct, frozen=True):
    """A device on which collectives are measured.

    `time_calls` makes the calls back to back and returns the microseconds of each. `time_loop` times them together,
    since an event after each takes time itself: the mean of sizes up to `loop_bytes` is from it; its number is that of
    calls that go before the loop. `conditions` says what the last batch was measured under. `record` turns a call that
    was made once into the one to be timed. After `evict` no buffer is in the cache. `compared_at_once` elements are
    verified in one operation. `free_bytes`: memory for larger pools, of all ranks of the node. `gpu`: by what GPUs are
    compared after the collectives.
    """

    torch_device: torch.device
    pool_bytes: int
    compared_at_once: int
    time_calls: Callable[[Calls, ProgressPage], list[float]]
    synchronize: Callable[[ProgressPage], None]
    record: Callable[[Call], Call] = lambda call: call
    evict: Callable[[], object] = lambda: None
    time_loop: Callable[[Calls, int, ProgressPage], list[float]] | None = None
    loop_bytes: int = -1
    conditions: Callable[[], Conditions] = Conditions
    free_bytes: Callable[[], int] = lambda: 0
    gpu: GpuParts | None = None


def open_device(backend: Backend, local_rank: int, *, cuda_graph: bool = False) -> Device:
    """Return the device of this rank: CPU memory for gloo, one of the GPUs for nccl, which is then current.

    GPU number `local_rank`; where ranks share GPUs (NCCL_MULTI_RANK_GPU_ENABLE), modulo their count.
    """
    import torch

    if backend == "gloo":
        return Device(torch.device("cpu"), CPU_POOL_BYTES, PERIOD, _time_on_cpu, lambda _: None)
    device = torch.device("cuda", local_rank % max(1, torch.cuda.device_count()))
    torch.cuda.set_device(device)
    return gpu_device(device, cuda_graph=cuda_graph)


def gpu_device(device: torch.device, *, cuda_graph: bool = False) -> Device:
    """Return the device whose calls run on the current GPU, and whose buffers are on `device`."""
    import torch

    cache = torch.zeros(GPU_POOL_BYTES, dtype=torch.uint8, device=device)
    pulse = GpuPulse(device)
    timer = GpuTimer(_gate_on(device), pulse)
    plain = Device(
        torch_device=device,
        pool_bytes=GPU_POOL_BYTES,
        compared_at_once=_GPU_COMPARED,
        time_calls=timer.time_calls,
        synchronize=pulse.synchronize,
        evict=cache.zero_,
        time_loop=timer.time_loop,
        loop_bytes=_LOOP_BYTES,
        conditions=lambda: timer.conditions,
        free_bytes=lambda: torch.cuda.mem_get_info()[0] * torch.cuda.device_count(),
        gpu=gpu_parts(device, cache, HealthWatch(cuda_address(device.index or 0), pynvml)),
    )
    return replace(plain, record=captured) if cuda_graph else plain


def _gate_on(device: torch.device) -> Call:
    """Return a call that no rank leaves before all have come, once there is a group."""
    import torch
    import torch.distributed as dist

    element = torch.zeros(1, device=device)
    return lambda: dist.all_reduce(element) if dist.is_initialized() else None


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
