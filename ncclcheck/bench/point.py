"""One point of the benchmark on one rank: first call, warm-up, batches of timed and verified iterations.

A batch is a pool of buffers: filled, then a barrier, then the timed calls back to back, one per buffer, as a plain
loop would make them; then the same buffers are verified, and the ranks exchange what they measured. Nothing but the
calls lies between the clock readings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.agreement import BatchReport, all_refused, barrier, exchange
from ncclcheck.bench.data import Difference, Tables, difference, fill
from ncclcheck.bench.footprint import ELEMENT_BYTES, plan_sizings
from ncclcheck.bench.gpu.device import Device
from ncclcheck.bench.heartbeat import NOT_IDLE, Heartbeat, Idle
from ncclcheck.bench.point_result import Batch, PointOf, precision_samples_us, result_of, times_us
from ncclcheck.bench.progress_page import Phase, ProgressPage
from ncclcheck.bench.task import WorkerTask
from ncclcheck.measure.busbw import NOTHING, Sizing
from ncclcheck.measure.collectives import COLLECTIVES, Collective, RankContext
from ncclcheck.measure.mesh.mesh_plan import mix_sizing
from ncclcheck.measure.rank_memory import pool_buffers, storage
from ncclcheck.measure.statistics import decide
from ncclcheck.model.bench import Op, Point
from ncclcheck.model.fact import Fact, Missing

if TYPE_CHECKING:
    from torch import Tensor

_UNLIMITED = 1 << 30
_BUFFERS = 4  # of the largest sizes, where the GPU has room: a batch of one call says little about a loop
_FREE_SHARE = 0.5  # of the free memory of a GPU: NCCL allocates its own buffers later
_REFUSALS = ("support", "invalid scalar type", "unconvertible", "not implemented")


class BenchRank(Struct, frozen=True):
    """What a rank needs while it measures."""

    task: WorkerTask
    device: Device
    send: Tensor  # every point's buffers are cut from these two
    recv: Tensor
    progress: ProgressPage
    heartbeat: Heartbeat
    began_s: float
    buffers: int = 1  # a batch rotates through so many at least


class Slot(Struct, frozen=True):
    """One buffer of the pool, and the call on it."""

    send: Tensor
    recv: Tensor
    call: Callable[[], object]


class PointSetup(Struct, frozen=True):
    """One point as this rank sees it. `lead_in` is for the call that goes before the timed ones of a batch."""

    collective: Collective
    context: RankContext
    tables: Tables
    sizing: Sizing
    slots: list[Slot]
    lead_in: Slot | None
    number: int


def prepare(task: WorkerTask, device: Device, progress: ProgressPage) -> BenchRank:
    """Return a rank with storage for all points of its plan, each page touched. Raises when memory does not suffice."""
    import torch

    sizings, element_bytes = plan_sizings(task.plan, task.world_size), ELEMENT_BYTES[task.plan.dtype]
    need = storage(sizings, element_bytes, device.pool_bytes)
    more = storage(sizings, element_bytes, device.pool_bytes, _BUFFERS)
    sharing = task.hosts.count(
        task.hosts[task.rank]
    )  # the GPUs that this process sees, with the ranks of its node
    fits = (more.send_count + more.recv_count) * element_bytes * sharing <= device.free_bytes() * _FREE_SHARE
    need, buffers = (more, _BUFFERS) if fits else (need, 1)
    dtype = getattr(torch, task.plan.dtype)
    mixed = mix_sizing(task.plan.mesh, element_bytes) if task.plan.mesh is not None else NOTHING
    send = torch.zeros(max(need.send_count, mixed.send_count), dtype=dtype, device=device.torch_device)
    recv = torch.zeros(max(need.recv_count, mixed.recv_count), dtype=dtype, device=device.torch_device)
    send.fill_(1)
    recv.fill_(1)
    return BenchRank(task, device, send, recv, progress, Heartbeat(), time.monotonic(), buffers)


def with_agreed_buffers(rank: BenchRank) -> BenchRank:
    """Return the rank with as many buffers per batch as every rank of its GPUs has room for."""
    if rank.task.plan.backend == "gloo":
        return rank
    reports = exchange(own_report(rank, [0.0, float(rank.buffers)]), rank.device, rank.progress)
    return replace(rank, buffers=int(min(report.durations_us[0] for report in reports)))


def measure_all(rank: BenchRank) -> Iterator[Fact[Point]]:
    """Yield every point as it is finished, the same on every rank; Missing where the backend rejects the op."""
    plan = rank.task.plan
    rank.progress.move("agreeing")
    now_s = rank_0_clock_s(exchange(own_report(rank, [0.0]), rank.device, rank.progress))
    refused: dict[Op, Missing] = {}
    points = [(op, size) for op in plan.ops for size in plan.sizes_bytes]
    for number, (op, size_bytes) in enumerate(points):
        if op in refused:
            yield refused[op]
            continue
        setup = set_up(rank, COLLECTIVES[op], size_bytes, number)
        share_s = max(0.0, plan.budget_s - now_s) / (len(points) - number)
        point, now_s = _measure(rank, setup, now_s, share_s)
        if isinstance(point, Missing):
            refused[op] = point
        yield point


def measure_round(rank: BenchRank, op: Op, size_bytes: int, iterations: int) -> float:
    """Return the mean over the iterations of the slowest rank's time in microseconds, the same on every rank.

    One call goes before that is not timed: the connections may have been idle for long.
    """
    setup = set_up(rank, COLLECTIVES[op], size_bytes, rank.task.plan.sizes_bytes.index(size_bytes))
    warm_up(rank, setup, 1)
    slowest: list[float] = []
    loop = _has_loops(rank, setup)
    while len(slowest) < iterations:
        done = len(slowest)
        batch = range(done + 1, 1 + min(iterations, done + len(setup.slots)))
        slowest += times_us(run_batch(rank, setup, "measuring", batch, loop=loop))
    return fmean(slowest)


def _measure(rank: BenchRank, setup: PointSetup, began_s: float, share_s: float) -> tuple[Fact[Point], float]:
    """Return the point, and rank 0's clock at its end."""
    plan = rank.task.plan
    first = first_call(rank, setup)
    if isinstance(first, Missing):
        return first, began_s
    (first_us,) = times_us(first)
    setup = replace(setup, slots=[_recorded(rank, setup, slot) for slot in setup.slots])
    affordable = _UNLIMITED if plan.iters is not None else int(share_s / 4 / (first_us / 1e6))
    warm_up(rank, setup, min(plan.warmup, affordable))
    typical_us, iteration = first_us, 0
    batches: list[Batch] = []
    while True:
        loop = _has_loops(rank, setup) and len(batches) % 2 == 0
        room = _UNLIMITED if plan.iters is not None else max(1, int(share_s / 4 / (typical_us / 1e6)))
        left = _UNLIMITED if plan.iters is None else plan.iters - iteration
        if loop:  # half of them are left to be timed one by one
            left = max(1, left // 2)
        size = min(len(setup.slots), room, left)
        iterations = range(iteration + 1, iteration + 1 + size)
        batches.append(Batch(run_batch(rank, setup, "measuring", iterations, loop=loop), loop))
        iteration += size
        typical_us = fmean(times_us(batches[-1].reports))
        now_s = rank_0_clock_s(batches[-1].reports)
        samples_us = precision_samples_us(batches)
        iters_left = None if plan.iters is None else len(samples_us) + plan.iters - iteration
        decision = decide(samples_us, iters=iters_left, spent_s=now_s - began_s, share_s=share_s)
        if not decision.go_on:
            point_of = PointOf(rank.task, setup.collective, setup.sizing, first_us)
            return result_of(point_of, batches, decision.unstable), now_s


def _recorded(rank: BenchRank, setup: PointSetup, slot: Slot) -> Slot:
    """Return the slot with its call as it is timed. Capturing a CUDA graph takes a while, so each is progress."""
    rank.progress.move("warm-up", setup.number)
    return replace(slot, call=rank.device.record(slot.call))


def _has_loops(rank: BenchRank, setup: PointSetup) -> bool:
    """Return whether the mean comes from loops in which no call is timed by itself."""
    return rank.device.time_loop is not None and setup.sizing.size_bytes <= rank.device.loop_bytes


def warm_up(rank: BenchRank, setup: PointSetup, calls: int) -> None:
    """Make calls with iteration numbers below 0: their data differ from all data that are verified."""
    for start in range(-calls, 0, len(setup.slots)):
        iterations = range(start, min(0, start + len(setup.slots)))
        rank.progress.move("warm-up", setup.number, iterations[0])
        _run(rank, setup, iterations)


def run_batch(
    rank: BenchRank, setup: PointSetup, phase: Phase, iterations: Sequence[int], *, loop: bool = False
) -> list[BatchReport]:
    """Return what all ranks measured in one batch."""
    rank.progress.move(phase, setup.number, iterations[0])
    durations_us, idle = _run(rank, setup, iterations, loop=loop)
    wrong = _verify(rank, setup, iterations) if rank.task.plan.verify and phase == "measuring" else []
    rank.progress.move("agreeing", setup.number, iterations[-1])
    return exchange(own_report(rank, durations_us, idle, wrong), rank.device, rank.progress)


def first_call(rank: BenchRank, setup: PointSetup) -> Fact[list[BatchReport]]:
    """Return the ranks' reports of the first call; Missing, with the backend's text, where it rejected every rank's."""
    try:
        return run_batch(rank, setup, "first-call", [0])
    except (RuntimeError, TypeError, ValueError) as error:
        if not _is_refusal(error):
            raise
        rank.progress.leave(measured=False)
        if not all_refused(rank.device, rank.progress):
            raise
        return Missing("unsupported", str(error).strip().splitlines()[-1])


def _is_refusal(error: Exception) -> bool:
    """Return whether the backend cannot do it at all, by the texts of ProcessGroupGloo, ProcessGroupNCCL and NCCL.

    "Backend gloo does not support reduce_scatter", "Invalid scalar type", "Unconvertible NCCL type", "Input tensor data
    type is not supported for NCCL process group", "FP8 reduction support begins with sm90 capable devices".
    """
    text = str(error).lower()
    return any(words in text for words in _REFUSALS)


def _run(
    rank: BenchRank, setup: PointSetup, iterations: Sequence[int], *, loop: bool = False
) -> tuple[list[float], Idle]:
    """Return the microseconds of the lead-in (0: none) and of each call, and how long this process could not run."""
    content = setup.collective.sent(setup.context)
    pairs = list(zip(setup.slots, iterations, strict=False))
    for slot, iteration in pairs:
        fill(slot.send, content, setup.tables, iteration)
    rank.device.evict()
    barrier(rank.device, rank.progress)
    rank.heartbeat.take()
    calls = [(iteration, slot.call) for slot, iteration in pairs]
    lead_in = setup.lead_in if iterations[0] > 1 else None
    if lead_in is not None:
        # As if the loop had gone on since the last batch: the barrier has ended the overlap of its calls.
        calls.insert(0, (iterations[0] - 1, lead_in.call))
    if loop and rank.device.time_loop is not None:
        durations_us = rank.device.time_loop(calls, int(lead_in is not None), rank.progress)
    else:
        durations_us = rank.device.time_calls(calls, rank.progress)
    return durations_us if lead_in is not None else [0.0, *durations_us], rank.heartbeat.take()


def _verify(rank: BenchRank, setup: PointSetup, iterations: Sequence[int]) -> list[tuple[int, Difference]]:
    """Return where the receive buffers of the batch are wrong: iteration and difference."""
    if not setup.collective.receives(setup.context):
        return []
    expected = setup.collective.expected(setup.context)
    found = []
    for slot, iteration in zip(setup.slots, iterations, strict=False):
        differs = difference(slot.recv, expected, setup.tables, iteration, rank.device.compared_at_once)
        if differs is not None:
            found.append((iteration, differs))
    return found


def own_report(
    rank: BenchRank,
    durations_us: list[float],
    idle: Idle = NOT_IDLE,
    wrong: Sequence[tuple[int, Difference]] = (),
) -> BatchReport:
    """Return what this rank sends to the others: the first duration is that of the lead-in."""
    iteration, first = wrong[0] if wrong else (0, Difference(0, 0, 0.0, 0.0))
    conditions = rank.device.conditions()
    return BatchReport(
        now_s=time.monotonic() - rank.began_s,
        stalled_us=idle.stood_s * 1e6,
        waited_us=idle.waited_s * 1e6,
        wrong=sum(differs.wrong for _, differs in wrong),
        iteration=iteration,
        offset=first.offset,
        got=first.got,
        expected=first.expected,
        lead_in_us=durations_us[0],
        clock_mhz=conditions.clock_mhz,
        launch_bound=conditions.launch_bound,
        durations_us=durations_us[1:],
    )


def rank_0_clock_s(reports: Sequence[BatchReport]) -> float:
    """Return the clock by which all ranks decide."""
    return reports[0].now_s


def set_up(rank: BenchRank, collective: Collective, size_bytes: int, number: int) -> PointSetup:
    """Return the point with its buffers; under that number the rank's progress is shown."""
    import torch.distributed as dist

    task = rank.task
    element_bytes = ELEMENT_BYTES[task.plan.dtype]
    sizing = collective.sizing(size_bytes, element_bytes, task.world_size)
    buffers = pool_buffers(sizing, element_bytes, rank.device.pool_bytes, rank.buffers)
    recv = cut(rank.recv, sizing.recv_count, buffers)
    send = recv if collective.in_place else cut(rank.send, sizing.send_count, buffers)
    context = RankContext(task.rank, task.world_size)
    slots = [Slot(*pair, collective.bind(dist, context, *pair)) for pair in zip(send, recv, strict=True)]
    lead_in = slots.pop() if collective.pipelines and len(slots) > 1 else None
    return PointSetup(
        collective, context, Tables(task.world_size, task.plan.dtype), sizing, slots, lead_in, number
    )


def cut(whole: Tensor, count: int, parts: int) -> Sequence[Tensor]:
    """Return so many neighbouring parts of `count` elements."""
    return [whole[start : start + count] for start in range(0, parts * count, count)]
