"""The figures of a call in groups, from what all ranks reported of its batches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.agreement import BatchReport
from ncclcheck.measure.busbw import Sizing, algbw_gb_s
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.iterations import iteration_times_us
from ncclcheck.measure.mesh.slow_groups import GroupComparison, slow_groups
from ncclcheck.measure.statistics import median_interval
from ncclcheck.model.benchmarks.mesh_bench import GroupTime, MeshCall, MeshPoint

MOST_GROUPS = 256

Batches = Sequence[Sequence[BatchReport]]  # of each batch the report of every rank of the job


class CallOf(Struct, frozen=True):
    """Which call it is, in which groups, and on which hosts the ranks are."""

    call: MeshCall
    sizing: Sizing
    groups: tuple[tuple[int, ...], ...]
    hosts: tuple[str, ...]
    verified: bool
    on_gpus: bool = False


def samples_us(batches: Batches, ranks: Sequence[int]) -> list[float]:
    """Return the time of each iteration in one group: that of its slowest rank."""
    return [
        us for reports in batches for us in iteration_times_us([reports[rank].durations_us for rank in ranks])
    ]


def group_times(of: CallOf, batches: Batches) -> list[GroupTime]:
    """Return the time of every group, slowest first."""
    times = [group_time(of, number, batches) for number in range(len(of.groups))]
    return sorted(times, key=lambda time: -time.time_us)


def better_of(before: Sequence[GroupTime], again: Sequence[GroupTime]) -> list[GroupTime]:
    """Return each group's better try, slowest first; what was wrong in either stays."""
    second = {time.group: time for time in again}
    best = []
    for time in before:
        retried = second[time.group]
        better = time if time.time_us <= retried.time_us else retried
        best.append(replace(better, wrong=_both(time.wrong, retried.wrong)))
    return sorted(best, key=lambda time: -time.time_us)


def compared(of: CallOf, times: Sequence[GroupTime]) -> GroupComparison:
    """Return which of all groups are slow."""
    return slow_groups(times, on_gpus=of.on_gpus)


def mesh_point(of: CallOf, times: Sequence[GroupTime], iters: int, alone: GroupTime | None) -> MeshPoint:
    """Return the point; times are slowest first. `alone`: the slowest while the others waited; it was verified too."""
    call = of.call
    if alone is not None:
        times = (replace(times[0], wrong=_both(times[0].wrong, alone.wrong)), *times[1:])
    wrong = [time for time in times if time.wrong]
    late = [time for time in times[MOST_GROUPS:] if time.wrong]
    comparison = compared(of, times)
    alone_us = None if alone is None else alone.time_us
    return MeshPoint(
        dimension=call.dimension,
        op=call.op,
        size_bytes=of.sizing.size_bytes,
        group_size=len(of.groups[0]),
        group_count=len(of.groups),
        iters=iters,
        fastest_us=times[-1].time_us,
        median_us=round(median(time.time_us for time in times), 3),
        groups=(*times[:MOST_GROUPS], *late[:MOST_GROUPS]),
        wrong=sum(time.wrong or 0 for time in wrong) if of.verified else None,
        wrong_groups=len(wrong),
        slow=comparison.slow[:MOST_GROUPS],
        judged=comparison.judged,
        alone_us=alone_us,
        contention=None if not alone_us else round(times[0].time_us / alone_us, 3),
        per_step=call.per_step,
        what=call.what,
    )


def unsupported(of: CallOf, why: str) -> MeshPoint:
    """Return the point of a call that the backend does not do."""
    call, count = of.call, len(of.groups)
    return MeshPoint(call.dimension, call.op, of.sizing.size_bytes, len(of.groups[0]), count, 0, 0.0, 0.0, (),
                     per_step=call.per_step, what=call.what, unsupported=why)  # fmt: skip


def group_time(of: CallOf, number: int, batches: Batches) -> GroupTime:
    """Return the time of the group of that number."""
    ranks = of.groups[number]
    times = samples_us(batches, ranks)
    around, middle = median_interval(times), median(times)
    hosts = tuple(dict.fromkeys(of.hosts[rank] for rank in ranks))
    wrong = sum(reports[rank].wrong for reports in batches for rank in ranks)
    return GroupTime(
        group=number,
        ranks=ranks,
        hosts=hosts,
        nodes=len(hosts),
        time_us=round(middle, 3),
        low_us=None if around is None else round(around.low, 3),
        high_us=None if around is None else round(around.high, 3),
        busbw_gb_s=algbw_gb_s(of.sizing.size_bytes, middle) * COLLECTIVES[of.call.op].bus_factor(len(ranks)),
        wrong=int(wrong) if of.verified else None,
    )


def _both(first: int | None, second: int | None) -> int | None:
    """Return the wrong elements of two measurements; None where one was not verified."""
    return None if first is None or second is None else first + second
