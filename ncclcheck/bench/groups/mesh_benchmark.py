"""The parallel groups of a job, measured by one rank of it: all groups of a dimension at once, then one alone."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct

from ncclcheck.bench.agreement import BatchReport, exchange
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.bench.groups.group_result import (
    CallOf,
    better_of,
    compared,
    group_time,
    group_times,
    mesh_point,
    unsupported,
)
from ncclcheck.bench.groups.group_setup import OwnCall, point_setup, waiting
from ncclcheck.bench.groups.mix import measure_mix
from ncclcheck.bench.groups.own_groups import form_groups
from ncclcheck.bench.point import (
    BenchRank,
    PointSetup,
    first_call,
    own_report,
    rank_0_clock_s,
    run_batch,
)
from ncclcheck.bench.point_result import times_us
from ncclcheck.measure.mesh.groups import order_of
from ncclcheck.measure.mesh.mesh_plan import sizing_of
from ncclcheck.measure.mesh.step_time import step_time
from ncclcheck.measure.statistics import decide
from ncclcheck.model.benchmarks.mesh_bench import MeshBench, MeshPlan, MeshPoint
from ncclcheck.model.fact import Missing

_MIX_SHARE = 0.2  # of the budget
_UNLIMITED = 1 << 30


class _Share(Struct, frozen=True):
    """The time that a measurement may take, from rank 0's clock `began_s` on."""

    began_s: float
    seconds: float


def measure_mesh(rank: BenchRank, plan: MeshPlan) -> MeshBench:
    """Return what was measured in the groups, the same on every rank."""
    rank.progress.move("agreeing")
    groups = form_groups(rank, plan.mesh)
    began_s = now_s = rank_0_clock_s(exchange(own_report(rank, [0.0]), rank.device, rank.progress))
    seconds = plan.budget_s * (1 - _MIX_SHARE if plan.mix else 1.0)
    points: list[MeshPoint] = []
    for number, call in enumerate(plan.calls):
        left_s = max(0.0, seconds - (now_s - began_s)) / (len(plan.calls) - number)
        own_call = OwnCall(rank, plan.mesh, call, groups[call.dimension])
        point, now_s = _measure_call(own_call, plan, _Share(now_s, left_s))
        points.append(point)
    refused = {(point.dimension, point.op) for point in points if point.unsupported}
    mix = measure_mix(rank, plan, groups, refused) if plan.mix else None
    return MeshBench(order_of(plan.mesh), tuple(points), mix, step_time(points, plan.uncounted))


def _measure_call(own_call: OwnCall, plan: MeshPlan, share: _Share) -> tuple[MeshPoint, float]:
    rank, call, groups = own_call.rank, own_call.call, own_call.groups
    sizing = sizing_of(call, plan.mesh, ELEMENT_BYTES[rank.task.plan.dtype])
    on_gpus = rank.task.plan.backend == "nccl"
    of = CallOf(call, sizing, groups.ranks, rank.task.hosts, rank.task.plan.verify, on_gpus)
    before = len(rank.task.plan.ops) * len(rank.task.plan.sizes_bytes)
    setup = point_setup(own_call, before + plan.calls.index(call))
    first = first_call(rank, setup)
    if isinstance(first, Missing):
        return unsupported(of, first.detail), share.began_s
    part = _Share(share.began_s, share.seconds / 3)
    batches, now_s = _batches(rank, setup, times_us(first), part)
    times, iters = group_times(of, batches), sum(len(batch[0].durations_us) for batch in batches)
    # A passing disturbance does not last, a slow link does.
    if compared(of, times).slow:
        again, now_s = _batches(rank, setup, times_us(batches[-1]), _Share(now_s, part.seconds))
        times = better_of(times, group_times(of, again))
    if len(of.groups) == 1:
        return mesh_point(of, times, iters, None), now_s
    slowest = times[0]
    alone = setup if groups.number == slowest.group else waiting(setup)
    batches, now_s = _batches(rank, alone, [slowest.time_us], _Share(now_s, part.seconds))
    return mesh_point(of, times, iters, group_time(of, slowest.group, batches)), now_s


def _batches(
    rank: BenchRank, setup: PointSetup, typical_us: Sequence[float], share: _Share
) -> tuple[list[list[BatchReport]], float]:
    """Measure until it is precise, or the share is spent; return the batches, and rank 0's clock at their end."""
    iters = rank.task.plan.iters
    batches: list[list[BatchReport]] = []
    slowest: list[float] = []
    while True:
        room = max(1, int(share.seconds / 4 / (fmean(typical_us) / 1e6))) if iters is None else _UNLIMITED
        left = _UNLIMITED if iters is None else iters - len(slowest)
        done = 1 + len(slowest)
        batches.append(
            run_batch(rank, setup, "measuring", range(done, done + min(len(setup.slots), room, left)))
        )
        typical_us = times_us(batches[-1])
        slowest += typical_us
        now_s = rank_0_clock_s(batches[-1])
        spent_s = now_s - share.began_s
        if not decide(slowest, iters=iters, spent_s=spent_s, share_s=share.seconds).go_on:
            return batches, now_s
