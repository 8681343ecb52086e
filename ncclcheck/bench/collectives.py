"""The collectives that can be measured: one record each, and nothing about any of them elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ncclcheck.bench import data
from ncclcheck.measure import busbw
from ncclcheck.measure.busbw import Sizing
from ncclcheck.measure.plan import memory_bytes
from ncclcheck.model.bench import BenchPlan, Op

if TYPE_CHECKING:
    from torch import Tensor

ELEMENT_BYTES = {"float32": 4, "float64": 8, "int32": 4, "float16": 2, "bfloat16": 2}
CPU_POOL_BYTES = 64 << 20
GPU_POOL_BYTES = 256 << 20  # beyond the last-level cache of any current GPU (H100, H200: 50 MB of L2)
Pattern: TypeAlias = "Callable[[int, int, str], Tensor]"  # (rank, world size, dtype) -> one period


class Collective(Struct, frozen=True):
    """One collective.

    `sent` is what a rank puts into its send buffer. `expected(chunk, world size, dtype)` is what the receive buffer
    must hold after the call, in each of its `chunks(world size)` equal chunks. `in_place`: what is sent lies in the
    receive buffer.
    """

    name: Op
    sizing: Callable[[int, int, int], Sizing]
    bus_factor: Callable[[int], float]
    in_place: bool
    run: Callable[[Tensor, Tensor], None]
    sent: Pattern
    chunks: Callable[[int], int]
    expected: Pattern


def _all_reduce(_send: Tensor, recv: Tensor) -> None:
    import torch.distributed as dist

    dist.all_reduce(recv)


def all_gather(send: Tensor, recv: Tensor) -> None:
    """`recv` then holds the `send` of every rank, in the order of ranks."""
    import torch.distributed as dist

    gather = (
        getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    )  # its new name since torch 2.13
    gather(recv, send)


COLLECTIVES: dict[Op, Collective] = {
    one.name: one
    for one in (
        Collective(
            name="all_reduce",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.reduced_and_spread,
            in_place=True,
            run=_all_reduce,
            sent=data.summand,
            chunks=lambda _world_size: 1,
            expected=data.total,
        ),
        Collective(
            name="all_gather",
            sizing=busbw.gathered_parts,
            bus_factor=busbw.received_from_others,
            in_place=False,
            run=all_gather,
            sent=data.moved,
            chunks=lambda world_size: world_size,
            expected=data.moved,
        ),
    )
}


def plan_sizings(plan: BenchPlan, world_size: int) -> Sequence[tuple[Sizing, bool]]:
    """Sizing of every point of the plan, each with whether the op works in place."""
    element_bytes = ELEMENT_BYTES[plan.dtype]
    return [
        (COLLECTIVES[op].sizing(size, element_bytes, world_size), COLLECTIVES[op].in_place)
        for op in plan.ops
        for size in plan.sizes_bytes
    ]


def memory_needed(plan: BenchPlan, world_size: int) -> int:
    """Bytes of memory each rank needs for the plan: of the host with gloo, of the GPU with nccl."""
    pool_bytes = GPU_POOL_BYTES if plan.backend == "nccl" else CPU_POOL_BYTES
    return memory_bytes(plan_sizings(plan, world_size), ELEMENT_BYTES[plan.dtype], pool_bytes)
