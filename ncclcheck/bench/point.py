"""One point of the benchmark on one rank: first call, warm-up, batches of timed and verified iterations.

A batch is a pool of buffers: filled, then a barrier, then the timed calls back to back, one per buffer, as a plain
loop would make them; then the same buffers are verified, and the ranks exchange what they measured. Nothing but the
calls lies between the clock readings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from ncclcheck.bench.agreement import BatchReport, barrier, exchange
from ncclcheck.bench.collectives import COLLECTIVES, ELEMENT_BYTES, Collective, plan_sizings
from ncclcheck.bench.data import Difference, difference, fill
from ncclcheck.bench.device import Device
from ncclcheck.bench.heartbeat import Heartbeat
from ncclcheck.bench.progress import Phase, ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.busbw import Sizing, algbw_gb_s
from ncclcheck.measure.lateness import RankSamples, rank_times, slowest_us
from ncclcheck.measure.plan import pool_buffers, storage
from ncclcheck.measure.statistics import Decision, decide, time_us
from ncclcheck.model.bench import Op, Point, WrongElement

if TYPE_CHECKING:
    from torch import Tensor

_UNLIMITED = 1 << 30


class Rank(Struct, frozen=True):
    """What a rank has in hand while it measures."""

    task: WorkerTask
    device: Device
    send: Tensor  # every point's buffers are cut from these two
    recv: Tensor
    progress: ProgressPage
    heartbeat: Heartbeat
    began_s: float


class _Slot(Struct, frozen=True):
    """One buffer of the pool."""

    send: Tensor
    recv: Tensor


class _Place(Struct, frozen=True):
    """One point as this rank sees it."""

    collective: Collective
    sizing: Sizing
    slots: list[_Slot]
    number: int


def prepare(task: WorkerTask, device: Device, progress: ProgressPage) -> Rank:
    """A rank with storage for all points of its plan, each page of it touched; raises when memory does not suffice."""
    import torch

    need = storage(
        plan_sizings(task.plan, task.world_size), ELEMENT_BYTES[task.plan.dtype], device.pool_bytes
    )
    dtype = getattr(torch, task.plan.dtype)
    send = torch.zeros(need.send_count, dtype=dtype, device=device.torch_device)
    recv = torch.zeros(need.recv_count, dtype=dtype, device=device.torch_device)
    send.fill_(1)
    recv.fill_(1)
    return Rank(task, device, send, recv, progress, Heartbeat(), time.monotonic())


def measure_all(rank: Rank) -> Iterator[Point]:
    """Every point of the plan, as it is finished; the same on every rank."""
    plan = rank.task.plan
    points = [(op, size) for op in plan.ops for size in plan.sizes_bytes]
    rank.progress.move("agreeing")
    now_s = _now(exchange(_own_report(rank, []), rank.device, rank.progress))
    for number, (op, size_bytes) in enumerate(points):
        place = _place(rank, COLLECTIVES[op], size_bytes, number)
        share_s = max(0.0, plan.budget_s - now_s) / (len(points) - number)
        point, now_s = _measure(rank, place, now_s, share_s)
        yield point


def measure_round(rank: Rank, op: Op, size_bytes: int, iterations: int) -> float:
    """Mean over the iterations of the slowest rank's time in microseconds, the same on every rank.

    One call goes before that is not timed: the connections may have been idle for long.
    """
    place = _place(rank, COLLECTIVES[op], size_bytes, rank.task.plan.sizes_bytes.index(size_bytes))
    _warm_up(rank, place, 1)
    slowest: list[float] = []
    while len(slowest) < iterations:
        done = len(slowest)
        batch = range(done + 1, 1 + min(iterations, done + len(place.slots)))
        reports = _batch(rank, place, "measuring", batch)
        slowest += slowest_us([one.durations_us for one in reports])
    return fmean(slowest)


def _measure(rank: Rank, place: _Place, began_s: float, share_s: float) -> tuple[Point, float]:
    """The point, and rank 0's clock at its end."""
    plan = rank.task.plan
    first_us = max(slowest_us([one.durations_us for one in _batch(rank, place, "first-call", [0])]))
    affordable = _UNLIMITED if plan.iters is not None else int(share_s / 2 / (first_us / 1e6))
    _warm_up(rank, place, min(plan.warmup, affordable))
    typical_us, iteration = first_us, 0
    reports: list[list[BatchReport]] = []
    slowest: list[float] = []
    while True:
        room = _UNLIMITED if plan.iters is not None else max(1, int(share_s / 4 / (typical_us / 1e6)))
        size = min(len(place.slots), room, _UNLIMITED if plan.iters is None else plan.iters - iteration)
        reports.append(_batch(rank, place, "measuring", range(iteration + 1, iteration + 1 + size)))
        iteration += size
        slowest += slowest_us([one.durations_us for one in reports[-1]])
        typical_us = sum(slowest[-size:]) / size
        now_s = _now(reports[-1])
        decision = decide(slowest, iters=plan.iters, spent_s=now_s - began_s, share_s=share_s)
        if not decision.go_on:
            return _point(rank, place, first_us, reports, decision), now_s


def _warm_up(rank: Rank, place: _Place, calls: int) -> None:
    """Iterations below 0: their data differ from those of every iteration that is verified."""
    for start in range(-calls, 0, len(place.slots)):
        iterations = range(start, min(0, start + len(place.slots)))
        rank.progress.move("warm-up", place.number, iterations[0])
        _run(rank, place, iterations)


def _batch(rank: Rank, place: _Place, phase: Phase, iterations: Sequence[int]) -> list[BatchReport]:
    """What all ranks measured in one batch."""
    rank.progress.move(phase, place.number, iterations[0])
    durations_us, stalled_us = _run(rank, place, iterations)
    wrong = _verify(rank, place, iterations) if rank.task.plan.verify and phase == "measuring" else []
    rank.progress.move("agreeing", place.number, iterations[-1])
    return exchange(_own_report(rank, durations_us, stalled_us, wrong), rank.device, rank.progress)


def _run(rank: Rank, place: _Place, iterations: Sequence[int]) -> tuple[list[float], float]:
    """Microseconds of each call, and for how many of them altogether this process stood still."""
    task, run = rank.task, place.collective.run
    sent = place.collective.sent(task.rank, task.world_size, task.plan.dtype)
    pairs = list(zip(place.slots, iterations, strict=False))
    for slot, iteration in pairs:
        fill(slot.send, sent, iteration)
    barrier(rank.device, rank.progress)
    rank.heartbeat.take_s()
    calls = [(iteration, partial(run, slot.send, slot.recv)) for slot, iteration in pairs]
    durations_us = rank.device.time_calls(calls, rank.progress)
    return durations_us, rank.heartbeat.take_s() * 1e6


def _verify(rank: Rank, place: _Place, iterations: Sequence[int]) -> list[tuple[int, Difference]]:
    """Where the receive buffers of the batch differ from what they must hold: iteration and difference."""
    task, collective = rank.task, place.collective
    chunks = collective.chunks(task.world_size)
    part = place.sizing.recv_count // chunks
    found = []
    for slot, iteration in zip(place.slots, iterations, strict=False):
        for chunk in range(chunks):
            expected = collective.expected(chunk, task.world_size, task.plan.dtype)
            buffer = slot.recv[chunk * part : (chunk + 1) * part]
            differs = difference(buffer, expected, iteration, rank.device.periods_at_once)
            if differs is not None:
                offset = chunk * part + differs.offset
                found.append((iteration, Difference(differs.wrong, offset, differs.got, differs.expected)))
    return found


def _own_report(
    rank: Rank,
    durations_us: list[float],
    stalled_us: float = 0.0,
    wrong: Sequence[tuple[int, Difference]] = (),
) -> BatchReport:
    iteration, first = wrong[0] if wrong else (0, Difference(0, 0, 0.0, 0.0))
    return BatchReport(
        now_s=time.monotonic() - rank.began_s,
        stalled_us=stalled_us,
        wrong=sum(differs.wrong for _, differs in wrong),
        iteration=iteration,
        offset=first.offset,
        got=first.got,
        expected=first.expected,
        durations_us=durations_us,
    )


def _now(reports: Sequence[BatchReport]) -> float:
    return reports[0].now_s


def _place(rank: Rank, collective: Collective, size_bytes: int, number: int) -> _Place:
    task = rank.task
    element_bytes = ELEMENT_BYTES[task.plan.dtype]
    sizing = collective.sizing(size_bytes, element_bytes, task.world_size)
    buffers = pool_buffers(sizing, element_bytes, rank.device.pool_bytes)
    recv = _parts(rank.recv, sizing.recv_count, buffers)
    send = recv if collective.in_place else _parts(rank.send, sizing.send_count, buffers)
    return _Place(collective, sizing, [_Slot(*pair) for pair in zip(send, recv, strict=True)], number)


def _parts(whole: Tensor, count: int, parts: int) -> Sequence[Tensor]:
    return [whole[start : start + count] for start in range(0, parts * count, count)]


def _point(
    rank: Rank, place: _Place, first_us: float, batches: Sequence[Sequence[BatchReport]], decision: Decision
) -> Point:
    task, sizing, collective = rank.task, place.sizing, place.collective
    samples = [
        RankSamples(
            [us for report in reports for us in report.durations_us],
            sum(report.stalled_us for report in reports),
        )
        for reports in zip(*batches, strict=True)
    ]
    slowest = slowest_us([one.durations_us for one in samples])
    spread = time_us(slowest)
    algbw = algbw_gb_s(sizing.size_bytes, spread.mean)
    return Point(
        op=collective.name,
        size_bytes=sizing.size_bytes,
        count=sizing.count,
        dtype=task.plan.dtype,
        iters=len(slowest),
        time_us=spread,
        first_us=first_us,
        algbw_gb_s=algbw,
        busbw_gb_s=algbw * collective.bus_factor(task.world_size),
        wrong=int(sum(report.wrong for batch in batches for report in batch)) if task.plan.verify else None,
        unstable=decision.unstable,
        ranks=rank_times(samples, task.hosts),
        first_wrong=_first_wrong(batches),
        wrong_ranks=tuple(sorted({rank for batch in batches for rank, one in enumerate(batch) if one.wrong})),
    )


def _first_wrong(batches: Sequence[Sequence[BatchReport]]) -> WrongElement | None:
    for batch in batches:
        for rank, report in enumerate(batch):
            if report.wrong:
                return WrongElement(
                    rank, int(report.iteration), int(report.offset), f"{report.got:g}", f"{report.expected:g}"
                )
    return None
