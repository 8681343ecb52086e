"""The memory that a benchmark needs, and the largest sizes that fit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.measure.busbw import Sizing
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.mesh.mesh_plan import mesh_sizings, mix_sizing
from ncclcheck.measure.rank_memory import memory_bytes
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.units import format_size

ELEMENT_BYTES = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int32": 4,
    "int8": 1,
    "uint8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
CPU_POOL_BYTES = 64 << 20
GPU_POOL_BYTES = 256 << 20  # beyond the last-level cache of any current GPU (B200: 126 MB of L2)


def plan_sizings(plan: BenchPlan, world_size: int) -> Sequence[tuple[Sizing, bool]]:
    """Return the sizing of every point of the plan and of its groups, each with whether the op works in place."""
    element_bytes = ELEMENT_BYTES[plan.dtype]
    of_all = [
        (COLLECTIVES[op].sizing(size, element_bytes, world_size), COLLECTIVES[op].in_place)
        for op in plan.ops
        for size in plan.sizes_bytes
    ]
    return of_all if plan.mesh is None else [*of_all, *mesh_sizings(plan.mesh, element_bytes)]


def mixed_bytes(plan: BenchPlan) -> int:
    """Return the memory of all calls of a mix together; 0 without one."""
    element_bytes = ELEMENT_BYTES[plan.dtype]
    sizing = mix_sizing(plan.mesh, element_bytes) if plan.mesh is not None else None
    return 0 if sizing is None else (sizing.send_count + sizing.recv_count) * element_bytes


def memory_needed(plan: BenchPlan, world_size: int) -> int:
    """Return how many bytes of memory each rank needs for the plan: of the host with gloo, of the GPU with nccl."""
    pool_bytes = GPU_POOL_BYTES if plan.backend == "nccl" else CPU_POOL_BYTES
    evicting = GPU_POOL_BYTES if plan.backend == "nccl" else 0  # bench/gpu/device.py, evict
    points = memory_bytes(plan_sizings(plan, world_size), ELEMENT_BYTES[plan.dtype], pool_bytes)
    return evicting + points + mixed_bytes(plan)


def shortage(plan: BenchPlan, world_size: int, ranks: int, has_bytes: int, whose: str) -> str:
    """Return why `ranks` ranks of the plan do not fit the memory that `whose` names, and which sizes would."""
    need, first, last = memory_needed(plan, world_size) * ranks, min(plan.sizes_bytes), max(plan.sizes_bytes)
    detail = (
        f"{format_size(last)}, the largest of --sizes, needs {need / 1e9:.1f} GB of memory for {ranks} "
        f"rank{'s' if ranks > 1 else ''}, {whose} {has_bytes / 1e9:.1f} GB"
    )
    fits = largest_that_fits(plan, world_size, has_bytes // ranks)
    if fits is None:
        return f"{detail}: not even 1 byte fits"
    offer = format_size(fits) if fits <= first else f"{format_size(first)}-{format_size(fits)}"
    return f"{detail}: the largest size that fits is {format_size(fits)}: give --sizes {offer}"


def largest_that_fits(plan: BenchPlan, world_size: int, memory_bytes_each: int) -> int | None:
    """Return the largest size that fits each rank's memory: one of the plan, or a power of two below its end.

    None where no size does.
    """
    powers = (1 << bits for bits in range(max(plan.sizes_bytes).bit_length()))
    fitting = [
        size
        for size in {*plan.sizes_bytes, *powers}
        if memory_needed(replace(plan, sizes_bytes=(size,)), world_size) <= memory_bytes_each
    ]
    return max(fitting, default=None)
