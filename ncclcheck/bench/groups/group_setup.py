"""One call of a mesh on one rank: its buffers, its data and the call in the rank's own group.

The data depend on the group besides rank, position and iteration, so what reaches another group is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.data import Tables
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.bench.groups.group_calls import GroupCalls
from ncclcheck.bench.groups.own_groups import DimensionGroups
from ncclcheck.bench.point import BenchRank, PointSetup, Slot, cut
from ncclcheck.measure.collectives import COLLECTIVES, Collective, Holds, RankContext
from ncclcheck.measure.content import Content
from ncclcheck.measure.mesh.mesh_plan import sizing_of
from ncclcheck.measure.rank_memory import pool_buffers
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.benchmarks.mesh_bench import MeshCall

if TYPE_CHECKING:
    from torch import Tensor

GROUP_STEP = 2003  # where in the table the data of a group begin after those of the group before it


class OwnCall(Struct, frozen=True):
    """A call of the mesh as this rank makes it: in its own group of the call's dimension."""

    rank: BenchRank
    mesh: Mesh
    call: MeshCall
    groups: DimensionGroups


def point_setup(own_call: OwnCall, number: int) -> PointSetup:
    """Return the call on the rank's buffers; under that number the rank's progress is shown."""
    rank, call = own_call.rank, own_call.call
    sizing = sizing_of(call, own_call.mesh, ELEMENT_BYTES[rank.task.plan.dtype])
    count = pool_buffers(sizing, ELEMENT_BYTES[rank.task.plan.dtype], rank.device.pool_bytes, rank.buffers)
    collective = COLLECTIVES[call.op]
    recv = cut(rank.recv, sizing.recv_count, count)
    send = recv if collective.in_place else cut(rank.send, sizing.send_count, count)
    return group_setup(own_call, list(zip(send, recv, strict=True)), number)


def group_setup(own_call: OwnCall, buffers: Sequence[tuple[Tensor, Tensor]], number: int) -> PointSetup:
    """Return the call on these buffers, in the rank's own group of the dimension."""
    import torch.distributed as dist

    rank, call, groups = own_call.rank, own_call.call, own_call.groups
    collective = of_group(COLLECTIVES[call.op], groups.first + groups.number)
    context = RankContext(groups.own_ranks.index(rank.task.rank), len(groups.own_ranks))
    calls = GroupCalls(dist, groups.process_group, groups.own_ranks)
    slots = [Slot(send, recv, collective.bind(calls, context, send, recv)) for send, recv in buffers]
    dtype = rank.task.plan.dtype
    sizing = sizing_of(call, own_call.mesh, ELEMENT_BYTES[dtype])
    return PointSetup(collective, context, Tables(context.world_size, dtype), sizing, slots, None, number)


def waiting(setup: PointSetup) -> PointSetup:
    """Return the setup of a rank that only waits while another group works: as many calls, which do nothing."""
    idle = [replace(slot, call=lambda: None) for slot in setup.slots]
    return replace(setup, slots=idle, collective=replace(setup.collective, receives=lambda _: False))


def of_group(collective: Collective, group: int) -> Collective:
    """Return the collective with the data of that group, counted over all dimensions."""

    def shifted(holds: Holds) -> Holds:
        def content(context: RankContext) -> Content:
            held = holds(context)
            return replace(held, start=held.start + GROUP_STEP * group)

        return content

    return replace(collective, sent=shifted(collective.sent), expected=shifted(collective.expected))
