"""The collectives that can be measured: one record each, and nothing about any of them elsewhere.

Only the name of a new one is also listed in `model.benchmarks.op.Op`, since it is part of the report. Nothing here
imports torch: `bind` is given torch.distributed, or what stands for it in a group (`bench/groups/group_calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from ncclcheck.measure import busbw, traffic
from ncclcheck.measure.busbw import Sizing
from ncclcheck.measure.content import PART_STEP, SOURCE_STEP, Content
from ncclcheck.measure.traffic import Shape, Term
from ncclcheck.model.bench import Op

if TYPE_CHECKING:
    from torch import Tensor

ROOT = 0  # of the collectives that have one; nccl-tests' default (`src/common.cu`, ncclroot)


class RankContext(Struct, frozen=True):
    """One rank of a collective: which, of how many."""

    rank: int
    world_size: int


Holds: TypeAlias = Callable[[RankContext], Content]
# torch.distributed, which rank of how many, its send and receive buffer -> the call
Binds: TypeAlias = "Callable[[Any, RankContext, Tensor, Tensor], Callable[[], object]]"


class Collective(Struct, frozen=True):
    """One collective: its sizes, its data, its call, and what it moves between nodes.

    `sizing` counts elements, `bus_factor` turns algorithm into bus bandwidth. `sent` is what a rank puts into its send
    buffer, `expected` what its receive buffer must hold after the call, at the ranks where `receives` says that it is
    defined. `in_place`: what is sent lies in the receive buffer. `bind` makes the call on two given buffers.
    `sums`: it adds up (nccl-tests: redop). `has_root`: one rank differs from the others. `ends_together`: no rank can
    leave the call before all have entered, so a rank with less time inside entered later. `pipelines`: ranks pass on
    what they receive, so in a loop one call overlaps with the next. `sums_for_all`: switches may add (NVLS), and NCCL
    has a tree for it, which exceeds the ring on two nodes. `network_limit_gb_s` None: that of `network_gb_s`.
    """

    name: Op
    sizing: Callable[[int, int, int], Sizing]
    bus_factor: Callable[[int], float]
    in_place: bool
    bind: Binds
    sent: Holds
    expected: Holds
    receives: Callable[[RankContext], bool] = lambda _: True
    sums: bool = False
    has_root: bool = False
    ends_together: bool = True
    pipelines: bool = False
    sums_for_all: bool = False
    network_gb_s: Callable[[Shape, Term], float] = traffic.ring
    network_limit_gb_s: Callable[[Shape, float, bool], float] | None = None


def gather_into(dist: Any) -> Callable[[Tensor, Tensor], object]:
    """Return torch's function that gathers one tensor of each rank, under its name since torch 2.13 or the old one."""
    function: Callable[[Tensor, Tensor], object] = (
        getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    )
    return function


def _all_gather(dist: Any, _context: RankContext, send: Tensor, recv: Tensor) -> Callable[[], object]:
    gather = gather_into(dist)
    return lambda: gather(recv, send)


def _all_reduce(dist: Any, _context: RankContext, _send: Tensor, recv: Tensor) -> Callable[[], object]:
    return lambda: dist.all_reduce(recv)


def _reduce_scatter(dist: Any, _context: RankContext, send: Tensor, recv: Tensor) -> Callable[[], object]:
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor  # likewise
    return lambda: scatter(recv, send)


def _all_to_all(dist: Any, _context: RankContext, send: Tensor, recv: Tensor) -> Callable[[], object]:
    return lambda: dist.all_to_all_single(recv, send)


def _broadcast(dist: Any, _context: RankContext, _send: Tensor, recv: Tensor) -> Callable[[], object]:
    return lambda: dist.broadcast(recv, ROOT)


def _reduce(dist: Any, _context: RankContext, _send: Tensor, recv: Tensor) -> Callable[[], object]:
    return lambda: dist.reduce(recv, ROOT)


def _gather(dist: Any, context: RankContext, send: Tensor, recv: Tensor) -> Callable[[], object]:
    parts = list(recv.chunk(context.world_size)) if _is_root(context) else None
    return lambda: dist.gather(send, parts, ROOT)


def _scatter(dist: Any, context: RankContext, send: Tensor, recv: Tensor) -> Callable[[], object]:
    parts = list(send.chunk(context.world_size)) if _is_root(context) else None
    return lambda: dist.scatter(recv, parts, ROOT)


def _send_recv(dist: Any, context: RankContext, send: Tensor, recv: Tensor) -> Callable[[], object]:
    if context.world_size == 1:  # the next rank is itself, to which torch sends nothing
        return lambda: recv.copy_(send)
    both = [
        dist.P2POp(dist.isend, send, (context.rank + 1) % context.world_size),
        dist.P2POp(dist.irecv, recv, _before(context)),
    ]
    return lambda: [work.wait() for work in dist.batch_isend_irecv(both)]


def _is_root(context: RankContext) -> bool:
    return context.rank == ROOT


def _before(context: RankContext) -> int:
    """Return the rank from which this one receives in a ring (nccl-tests `src/sendrecv.cu`)."""
    return (context.rank - 1) % context.world_size


def _summand(context: RankContext) -> Content:
    return Content("summand", context.rank)


def _summands_for_all(context: RankContext) -> Content:
    return Content("summand", context.rank, context.world_size, PART_STEP)


def _total(_context: RankContext) -> Content:
    return Content("total")


def _own_part_of_total(context: RankContext) -> Content:
    return Content("total", PART_STEP * context.rank)


def _own_data(context: RankContext) -> Content:
    return Content("moved", SOURCE_STEP * context.rank)


def _parts_for_all(context: RankContext) -> Content:
    return Content("moved", SOURCE_STEP * context.rank, context.world_size, PART_STEP)


def _of_every_rank(context: RankContext) -> Content:
    return Content("moved", 0, context.world_size, SOURCE_STEP)


def _own_part_of_every_rank(context: RankContext) -> Content:
    return Content("moved", PART_STEP * context.rank, context.world_size, SOURCE_STEP)


def _of_root(_context: RankContext) -> Content:
    return Content("moved", SOURCE_STEP * ROOT)


def _own_part_of_root(context: RankContext) -> Content:
    return Content("moved", SOURCE_STEP * ROOT + PART_STEP * context.rank)


def _of_the_rank_before(context: RankContext) -> Content:
    return Content("moved", SOURCE_STEP * _before(context))


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
            sums=True,
            sums_for_all=True,
            network_limit_gb_s=traffic.limit_to_everybody,
        ),
        Collective(
            name="all_gather",
            sizing=busbw.gathered_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_all_gather,
            sent=_own_data,
            expected=_of_every_rank,
            network_limit_gb_s=traffic.limit_to_everybody,
        ),
        Collective(
            name="reduce_scatter",
            sizing=busbw.spread_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_reduce_scatter,
            sent=_summands_for_all,
            expected=_own_part_of_total,
            sums=True,
            network_limit_gb_s=traffic.limit_to_everybody,
        ),
        Collective(
            name="all_to_all",
            sizing=busbw.exchanged_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_all_to_all,
            sent=_parts_for_all,
            expected=_own_part_of_every_rank,
            network_gb_s=traffic.exchange_of_all,
        ),
        Collective(
            name="broadcast",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.once,
            in_place=True,
            bind=_broadcast,
            sent=_own_data,
            expected=_of_root,
            ends_together=False,
            pipelines=True,
            has_root=True,
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
            sums=True,
            has_root=True,
        ),
        Collective(
            name="gather",
            sizing=busbw.gathered_parts,
            bus_factor=busbw.all_but_own_part,
            in_place=False,
            bind=_gather,
            sent=_own_data,
            expected=_of_every_rank,
            receives=_is_root,
            ends_together=False,
            has_root=True,
            network_gb_s=traffic.through_root,
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
            has_root=True,
            network_gb_s=traffic.through_root,
        ),
        Collective(
            name="send_recv",
            sizing=busbw.whole_buffer,
            bus_factor=busbw.once,
            in_place=False,
            bind=_send_recv,
            sent=_own_data,
            expected=_of_the_rank_before,
            ends_together=False,
            network_gb_s=traffic.one_card,
            network_limit_gb_s=traffic.limit_of_the_rate,
        ),
    )
}
