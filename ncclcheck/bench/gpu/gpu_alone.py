"""What all GPUs do at the same time: a matrix multiplication, its clock under that load, and copies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.agreement import barrier
from ncclcheck.bench.gathering import gather_documents
from ncclcheck.bench.gpu.gpu_parts import GpuParts, Work
from ncclcheck.bench.point import BenchRank
from ncclcheck.measure.blame_gpus import slow_gpus
from ncclcheck.model.bench import GpuSpeed
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError

_MOST_CALLS = 2000
_CLOCK_CYCLES, _CLOCK_SPINS = 1_000_000, 5  # half a millisecond at 2 GHz
_MOST_PASSES = 3
_TERA, _GIGA = 1e12, 1e9
_LONGEST_MODEL = 100
# Of torch's allocator, and of cuBLAS, which allocates memory of its own at its first call.
_NO_MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED")


def gpu_speeds(rank: BenchRank, parts: GpuParts) -> tuple[GpuSpeed, ...]:
    """Return what the GPU of each rank does while all others do the same; the same on every rank.

    Where one looks slow all do it again, and the best counts: a disturbance does not last, a slow GPU does.
    """
    own_speed = _measured(rank, parts)
    found = _gathered(rank, own_speed)
    for _ in range(_MOST_PASSES - 1):
        if not slow_gpus(found):
            break
        own_speed = _better(own_speed, _measured(rank, parts))
        found = _gathered(rank, own_speed)
    return _gathered(rank, replace(own_speed, health=parts.health.take()))


def _measured(rank: BenchRank, parts: GpuParts) -> GpuSpeed:
    multiplied, clock_mhz = _rate(rank, lambda: parts.multiply(partial(_typical_ms, rank)))
    within, _ = _rate(rank, parts.copy_within)
    from_host, _ = _rate(rank, parts.copy_from_host)
    return GpuSpeed(
        rank.task.rank,
        rank.task.hosts[rank.task.rank],
        parts.model[:_LONGEST_MODEL],
        round(clock_mhz, 1),
        round(multiplied / _TERA, 3),
        round(within / _GIGA, 3),
        round(from_host / _GIGA, 3),
    )


def _better(before: GpuSpeed, again: GpuSpeed) -> GpuSpeed:
    return replace(
        before,
        clock_mhz=max(before.clock_mhz, again.clock_mhz),
        compute_tflop_s=max(before.compute_tflop_s, again.compute_tflop_s),
        device_gb_s=max(before.device_gb_s, again.device_gb_s),
        host_gb_s=max(before.host_gb_s, again.host_gb_s),
    )


def _gathered(rank: BenchRank, own_speed: GpuSpeed) -> tuple[GpuSpeed, ...]:
    rank.progress.enter()
    documents = gather_documents(encode(own_speed), rank.task.world_size, rank.device, rank.progress)
    rank.progress.leave(measured=False)
    return tuple(speed for document in documents if (speed := _decoded(document)) is not None)


def _rate(rank: BenchRank, make: Callable[[], Work]) -> tuple[float, float]:
    """Return how much the GPU does per second while all ranks do the same for 40 ms, and its clock in MHz after it.

    Both are 0 where the work does not fit what is free of the GPU's memory.
    """
    work: Work | None = None
    calls = 1
    try:
        work = make()
        calls = _calls_for(rank, work)
    except RuntimeError as error:
        if not any(words in str(error) for words in _NO_MEMORY):
            raise
        work = None
    barrier(rank.device, rank.progress)
    if work is None:
        return 0.0, 0.0
    rank.progress.enter()
    took_ms, clock_mhz = _took_ms(rank, work, calls)
    rank.progress.leave(measured=False)
    return work.amount * calls / took_ms * 1e3, clock_mhz


def _calls_for(rank: BenchRank, work: Work) -> int:
    return max(1, min(_MOST_CALLS, round(timeouts.ISOLATED_GPU_S * 1e3 / _typical_ms(rank, work))))


def _typical_ms(rank: BenchRank, work: Work) -> float:
    """Return the milliseconds of one call; the one before it loads what it needs."""
    _took_ms(rank, work, 1)
    return _took_ms(rank, work, 1)[0]


def _took_ms(rank: BenchRank, work: Work, calls: int) -> tuple[float, float]:
    """Return the milliseconds of so many calls, and the clock in MHz right after them, by the best of a few spins.

    Whatever else the GPU does meanwhile makes a spin longer, and never shorter.
    """
    import torch

    began, *spins = (torch.cuda.Event(enable_timing=True) for _ in range(2 + _CLOCK_SPINS))
    began.record()
    for _ in range(calls):
        work.call()
    spins[0].record()
    for event in spins[1:]:
        torch.cuda._sleep(_CLOCK_CYCLES)
        event.record()
    rank.device.synchronize(rank.progress)
    spin_ms = min(before.elapsed_time(after) for before, after in pairwise(spins))
    took_ms = max(began.elapsed_time(spins[0]), 1e-6)
    return took_ms, _CLOCK_CYCLES / max(spin_ms, 1e-6) / 1e3


def _decoded(document: bytes) -> GpuSpeed | None:
    try:
        return decode(document, GpuSpeed)
    except DecodeError:
        return None  # what NVML said was longer than a document
