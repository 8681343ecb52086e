"""The collectives that can be measured: one record each, and nothing about any of them elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.data import PART_STEP, SOURCE_STEP, Content
from ncclcheck.measure import busbw
from ncclcheck.measure.busbw import Sizing
from ncclcheck.measure.plan import memory_bytes
from ncclcheck.model.bench import BenchPlan, Op
from ncclcheck.model.units import format_size

if TYPE_CHECKING:
    from torch import Tensor

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
ROOT = 0  # of the collectives that have one; nccl-tests' default (`src/common.cu`, ncclroot)


class Seat(Struct, frozen=True):
    """Which rank, of how many."""

    rank: int
    world_size: int


Holds: TypeAlias = Callable[[Seat], Content]
Binds: TypeAlias = "Callable[[Seat, Tensor, Tensor], Callable[[], object]]"


class Collective(Struct, frozen=True):
    """One collective.

    `sizing` counts elements, `bus_factor` turns algorithm into bus bandwidth. `sent` is what a rank puts into its send
    buffer, `expected` what its receive buffer must hold after the call, at the ranks where `receives` says that it is
    defined. `in_place`: what is sent lies in the receive buffer. `bind` makes the call on two given buffers.
    `ends_together`: nobody can leave the call before all have come, so who spends less time inside came later.
    `pipelines`: ranks pass on what they receive, so in a loop one call overlaps with the next.
    """

    name: Op
    sizing: Callable[[int, int, int], Sizing]
    bus_factor: Callable[[int], float]
    in_place: bool
    bind: Binds
    sent: Holds
    expected: Holds
    receives: Callable[[Seat], bool] = lambda _: True
    ends_together: bool = True
    pipelines: bool = False


def all_gather(send: Tensor, recv: Tensor) -> None:
    """`recv` then holds the `send` of every rank, in the order of ranks."""
    import torch.distributed as dist

    # Its name since torch 2.13; before, the other one.
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    gather(recv, send)


def _all_reduce(_seat: Seat, _send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    return lambda: dist.all_reduce(recv)


def _reduce_scatter(_seat: Seat, send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor  # likewise
    return lambda: scatter(recv, send)


def _all_to_all(_seat: Seat, send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    return lambda: dist.all_to_all_single(recv, send)


def _broadcast(_seat: Seat, _send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    return lambda: dist.broadcast(recv, ROOT)


def _reduce(_seat: Seat, _send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    return lambda: dist.reduce(recv, ROOT)


def _gather(seat: Seat, send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    parts = list(recv.chunk(seat.world_size)) if _is_root(seat) else None
    return lambda: dist.gather(send, parts, ROOT)


def _scatter(seat: Seat, send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    parts = list(send.chunk(seat.world_size)) if _is_root(seat) else None
    return lambda: dist.scatter(recv, parts, ROOT)


def _send_recv(seat: Seat, send: Tensor, recv: Tensor) -> Callable[[], object]:
    import torch.distributed as dist

    if seat.world_size == 1:  # the next rank is itself, to which torch sends nothing
        return lambda: recv.copy_(send)
    both = [
        dist.P2POp(dist.isend, send, (seat.rank + 1) % seat.world_size),
        dist.P2POp(dist.irecv, recv, _before(seat)),
    ]
    return lambda: [work.wait() for work in dist.batch_isend_irecv(both)]


def _is_root(seat: Seat) -> bool:
    return seat.rank == ROOT


def _before(seat: Seat) -> int:
    """The rank from which this one receives in a ring (nccl-tests `src/sendrecv.cu`)."""
    return (seat.rank - 1) % seat.world_size


def _summand(seat: Seat) -> Content:
    return Content("summand", seat.rank)


def _summands_for_all(seat: Seat) -> Content:
    return Content("summand", seat.rank, seat.world_size, PART_STEP)


def _total(_seat: Seat) -> Content:
    return Content("total")


def _own_part_of_total(seat: Seat) -> Content:
    return Content("total", PART_STEP * seat.rank)


def _own(seat: Seat) -> Content:
    return Content("moved", SOURCE_STEP * seat.rank)


def _parts_for_all(seat: Seat) -> Content:
    return Content("moved", SOURCE_STEP * seat.rank, seat.world_size, PART_STEP)


def _of_every_rank(seat: Seat) -> Content:
    return Content("moved", 0, seat.world_size, SOURCE_STEP)


def _own_part_of_every_rank(seat: Seat) -> Content:
    return Content("moved", PART_STEP * seat.rank, seat.world_size, SOURCE_STEP)


def _of_root(_seat: Seat) -> Content:
    return Content("moved", SOURCE_STEP * ROOT)


def _own_part_of_root(seat: Seat) -> Content:
    return Content("moved", SOURCE_STEP * ROOT + PART_STEP * seat.rank)


def _of_the_rank_before(seat: Seat) -> Content:
    return Content("moved", SOURCE_STEP * _before(seat))


COLLECTIVES: dict[Op, Collective] = {
    collective.name: collective
    for collective in (
        Collective(
            name="all_reduce",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.reduced_and_spread,
            in_place=True,
            bind=_all_reduce,
            sent=_summand,
            expected=_total,
        ),
        Collective(
            name="all_gather",
            sizing=busbw.gathered_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=lambda _, send, recv: lambda: all_gather(send, recv),
            sent=_own,
            expected=_of_every_rank,
        ),
        Collective(
            name="reduce_scatter",
            sizing=busbw.spread_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_reduce_scatter,
            sent=_summands_for_all,
            expected=_own_part_of_total,
        ),
        Collective(
            name="all_to_all",
            sizing=busbw.exchanged_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_all_to_all,
            sent=_parts_for_all,
            expected=_own_part_of_every_rank,
        ),
        Collective(
            name="broadcast",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.once,
            in_place=True,
            bind=_broadcast,
            sent=_own,
            expected=_of_root,
            ends_together=False,
            pipelines=True,
        ),
        Collective(
            name="reduce",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.once,
            in_place=True,
            bind=_reduce,
            sent=_summand,
            expected=_total,
            receives=_is_root,
            ends_together=False,
        ),
        Collective(
            name="gather",
            sizing=busbw.gathered_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_gather,
            sent=_own,
            expected=_of_every_rank,
            receives=_is_root,
            ends_together=False,
        ),
        Collective(
            name="scatter",
            sizing=busbw.spread_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_scatter,
            sent=_parts_for_all,
            expected=_own_part_of_root,
            ends_together=False,
        ),
        Collective(
            name="send_recv",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.once,
            in_place=False,
            bind=_send_recv,
            sent=_own,
            expected=_of_the_rank_before,
            ends_together=False,
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
    evicting = GPU_POOL_BYTES if plan.backend == "nccl" else 0  # bench/device.py, evict
    return evicting + memory_bytes(plan_sizings(plan, world_size), ELEMENT_BYTES[plan.dtype], pool_bytes)


def shortage(plan: BenchPlan, world_size: int, ranks: int, has_bytes: int, whose: str) -> str:
    """Why `ranks` ranks of the plan do not fit the memory that `whose` names, for people, and which sizes would."""
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
    """The largest size that fits when each rank has so much memory: one of the plan, or a power of two below its end.

    None where no size does.
    """
    powers = (1 << bits for bits in range(max(plan.sizes_bytes).bit_length()))
    fitting = [
        size
        for size in {*plan.sizes_bytes, *powers}
        if memory_needed(replace(plan, sizes_bytes=(size,)), world_size) <= memory_bytes_each
    ]
    return max(fitting, default=None)
