"""The mix: all calls of a mesh in one fixed order on every rank, one after the other, and all at once.

Every rank makes the same calls in the same order, each in its own group, so no cycle of ranks that wait for each other
can arise: the first call that is not done by all has all of its ranks in it, or on their way to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from statistics import fmean, median
from typing import Any

from msgspec import Struct

from ncclcheck.bench.agreement import barrier, exchange
from ncclcheck.bench.data import Difference, difference, fill
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.bench.groups.group_calls import GroupCalls
from ncclcheck.bench.groups.group_setup import OwnCall, group_setup
from ncclcheck.bench.groups.own_groups import DimensionGroups
from ncclcheck.bench.point import BenchRank, PointSetup, Slot, own_report, rank_0_clock_s
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.mesh.mesh_plan import mix_calls, sizing_of
from ncclcheck.model.benchmarks.mesh_bench import MeshCall, MeshPlan, Mix, MixShare
from ncclcheck.model.benchmarks.op import Op

LEAST_ROUNDS, MOST_ROUNDS = 5, 50


class _Part(Struct, frozen=True):
    """One call of the mix on this rank, as it is made by itself, and as it is started while others are on their way."""

    call: MeshCall
    setup: PointSetup
    started: Slot
    calls: GroupCalls


def measure_mix(
    rank: BenchRank, plan: MeshPlan, groups: Mapping[str, DimensionGroups], unsupported: Set[tuple[str, Op]]
) -> Mix | None:
    """Return the mix of what the backend does, the same on every rank; None where that is nothing."""
    calls = [call for call in mix_calls(plan) if (call.dimension, call.op) not in unsupported]
    if not calls:
        return None
    parts = _parts(rank, plan, calls, groups)
    serial: list[list[list[float]]] = []  # of each round the times of every rank, by call
    overlapped: list[float] = []
    wrong = now_s = 0.0
    ends_s: float | None = None
    while len(serial) < LEAST_ROUNDS or (len(serial) < MOST_ROUNDS and now_s < (ends_s or 0.0)):
        first = 2 * len(serial)
        rows, now_s, missed = _round(rank, parts, first, [part.setup.slots[0].call for part in parts])
        serial.append(rows)
        wrong += missed
        rows, now_s, missed = _round(rank, parts, first + 1, [_all_at_once(parts)])
        overlapped.append(max(row[0] for row in rows))
        wrong += missed
        ends_s = now_s + plan.budget_s / 5 if ends_s is None else ends_s
    return _mix(calls, serial, overlapped, int(wrong) if rank.task.plan.verify else None)


def _parts(
    rank: BenchRank,
    plan: MeshPlan,
    calls: Sequence[MeshCall],
    groups: Mapping[str, DimensionGroups],
) -> list[_Part]:
    """Cut a buffer of its own for each call."""
    import torch.distributed as dist

    number = len(rank.task.plan.ops) * len(rank.task.plan.sizes_bytes) + len(plan.calls)
    parts = []
    sent = received = 0
    for call in calls:
        dimension, in_place = groups[call.dimension], COLLECTIVES[call.op].in_place
        sizing = sizing_of(call, plan.mesh, ELEMENT_BYTES[rank.task.plan.dtype])
        recv = rank.recv[received : received + sizing.recv_count]
        send = recv if in_place else rank.send[sent : sent + sizing.send_count]
        received += sizing.recv_count
        sent += 0 if in_place else sizing.send_count
        setup = group_setup(OwnCall(rank, plan.mesh, call, dimension), [(send, recv)], number)
        started = GroupCalls(dist, dimension.process_group, dimension.own_ranks, overlapped=True)
        slot = Slot(send, recv, setup.collective.bind(started, setup.context, send, recv))
        parts.append(_Part(call, setup, slot, started))
    return parts


def _all_at_once(parts: Sequence[_Part]) -> Any:
    def start_and_wait() -> None:
        for part in parts:
            part.started.call()
        for part in parts:
            part.calls.wait()

    return start_and_wait


def _round(
    rank: BenchRank, parts: Sequence[_Part], iteration: int, calls: Sequence[Any]
) -> tuple[list[list[float]], float, float]:
    """Return the times of every rank by call, rank 0's clock, and how many elements were wrong."""
    number = parts[0].setup.number
    rank.progress.move("measuring" if iteration > 1 else "first-call", number, iteration)
    for part in parts:
        setup = part.setup
        fill(setup.slots[0].send, setup.collective.sent(setup.context), setup.tables, iteration)
    barrier(rank.device, rank.progress)
    durations_us = rank.device.time_calls([(iteration, call) for call in calls], rank.progress)
    checked = parts if rank.task.plan.verify else ()
    wrong = [
        (iteration, found) for part in checked if (found := _difference(rank, part, iteration)) is not None
    ]
    rank.progress.move("agreeing", number, iteration)
    reports = exchange(own_report(rank, [0.0, *durations_us], wrong=wrong), rank.device, rank.progress)
    missed = sum(report.wrong for report in reports)
    return [report.durations_us for report in reports], rank_0_clock_s(reports), missed


def _difference(rank: BenchRank, part: _Part, iteration: int) -> Difference | None:
    setup = part.setup
    if not setup.collective.receives(setup.context):
        return None
    expected = setup.collective.expected(setup.context)
    return difference(setup.slots[0].recv, expected, setup.tables, iteration, rank.device.compared_at_once)


def _mix(
    calls: Sequence[MeshCall], serial: list[list[list[float]]], overlapped: list[float], wrong: int | None
) -> Mix:
    """Return the figures without the first round, in which the connections are made."""
    rounds = serial[1:]
    serial_us = median(max(sum(row) for row in rows) for rows in rounds)
    overlapped_us = median(overlapped[1:])
    each_us = [median(fmean(row[number] for row in rows) for rows in rounds) for number in range(len(calls))]
    of_dimension: dict[str, float] = {}
    for call, us in zip(calls, each_us, strict=True):
        of_dimension[call.dimension] = of_dimension.get(call.dimension, 0.0) + us
    total = sum(each_us) or 1.0
    shares = tuple(MixShare(name, round(us, 3), round(us / total, 4)) for name, us in of_dimension.items())
    gain = round(serial_us / overlapped_us, 3) if overlapped_us else 0.0
    return Mix(tuple(calls), len(rounds), round(serial_us, 3), round(overlapped_us, 3), gain, shares, wrong)
