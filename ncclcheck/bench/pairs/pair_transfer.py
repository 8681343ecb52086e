"""The transfers of one pair, in a process of its own: first one way, then the other, with verified data.

Where both directions are wanted at once, and of more ranks, they are a ring, in which all send and receive at the same
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ncclcheck.bench.gpu.device_id import device_id
from ncclcheck.bench.pairs.pair_barrier import PairBarrier
from ncclcheck.bench.pairs.pair_stream import (
    LEAST_BYTES,
    MOST_COUNTED,
    End,
    Stream,
    alone,
    exchange,
    pattern,
    stream,
    synchronize,
    together,
    wrong_bytes,
)
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.exchange.store.torch_versions import make_store
from ncclcheck.measure.isolation.pair_tests import deviation_of, middle_mean
from ncclcheck.timeouts import GROUP_CALL_S, PAIR_ROUND_TRIPS_S, PAIR_SLOW_FIRST_S

if TYPE_CHECKING:
    import torch
    from torch.distributed import Store

# Of the transfer that finds the size. A slow path shows by the short one; on others the long one also takes what a
# shaper lets through at once.
FIRST_BYTES, SHORT_FIRST_BYTES = 1 << 20, 1 << 18
LEAST_ROUND_TRIPS = 20  # however long they take


def measure_pair(task: PairTask, moved: Callable[[], object]) -> PairResult:
    """Measure with the other ranks; return what this one received. Raises RuntimeError of torch.

    `moved` is called whenever a part of a transfer went through or was verified.
    """
    device, store = _join(task)
    end = End(task, device, moved)
    if task.ring_bytes:
        return _ring(end, task.ring_bytes)
    round_trip_us = _round_trip_us(end)
    barrier = PairBarrier(store, task, moved)
    if task.at_once:
        barrier.meet("both")
        found = _ring(end, _agreed_bytes(end, 0, 0))
    else:
        found = _both_ways(end, barrier)
    return replace(found, round_trip_us=round_trip_us)


def _round_trip_us(end: End) -> float:
    """Return the shortest time of a byte there and back, to rank 0, which began it; 0 to the other, and of none.

    A byte of 1 comes back, the first 0 ends it.
    """
    import torch

    task = end.task
    if not task.round_trips:
        return 0.0
    byte = torch.ones(1, dtype=torch.uint8, device=end.device)
    if task.rank:
        while True:
            exchange(end, byte, 0)
            if not int(byte.item()):
                return 0.0
            exchange(end, byte, 1)
    took_s: list[float] = []
    began = time.perf_counter()
    while len(took_s) <= task.round_trips and (
        len(took_s) < LEAST_ROUND_TRIPS or time.perf_counter() - began < PAIR_ROUND_TRIPS_S
    ):
        begin = time.perf_counter()
        exchange(end, byte, 0)
        exchange(end, byte, 1)
        took_s.append(time.perf_counter() - begin)
    exchange(end, byte.zero_(), 0)
    return min(took_s[1:]) * 1e6


def _join(task: PairTask) -> tuple[torch.device, Store]:
    """Join the group of the task's ranks; return the device that its buffers are on, and the store of the run."""
    import torch
    import torch.distributed as dist

    device = torch.device("cpu")
    if task.backend == "nccl":
        device = torch.device("cuda", task.rail)
        torch.cuda.set_device(device)
    store = make_store(
        dist.TCPStore,
        task.store_host,
        task.store_port,
        is_master=False,
        wait_for_workers=False,
        timeout=timedelta(seconds=task.join_s),
    )
    dist.init_process_group(
        task.backend,
        store=dist.PrefixStore(task.store_prefix, store),
        rank=task.rank,
        world_size=task.ranks,
        timeout=timedelta(seconds=GROUP_CALL_S),
        **device_id(dist.init_process_group, torch.__version__, device),
    )
    return device, store


def _both_ways(end: End, barrier: PairBarrier) -> PairResult:
    """Measure one direction after the other, each together with the other pairs of the round."""
    import torch

    task = end.task
    received = PairResult(task.number, rail=task.rail)
    size_bytes = 0
    for sender in (0, 1):
        barrier.meet(str(sender))
        size_bytes = _agreed_bytes(end, sender, size_bytes)
        found = _one_way(end, sender, size_bytes, barrier)
        if task.rank != sender:
            received = found
    exchange(end, torch.zeros(1, dtype=torch.uint8, device=end.device), 0)
    return received


def _one_way(end: End, sender: int, size_bytes: int, barrier: PairBarrier) -> PairResult:
    """Transfer from `sender` to the other rank: a stream of parts of that size, or several of many."""
    task = end.task
    streams = []
    for done in range(0, task.transfers, MOST_COUNTED):
        parts = min(MOST_COUNTED, task.transfers - done)
        demand = (
            together(barrier, f"{sender}/{done}", parts, size_bytes) if task.barrier_ranks else alone(parts)
        )
        streams.append(stream(end, sender, size_bytes, demand))
    return _result(task, size_bytes, streams)


def _agreed_bytes(end: End, sender: int, back_bytes: int) -> int:
    """Return the size of a transfer that takes long enough, by one from `sender` to the other rank.

    `back_bytes`: the size that was right for the other direction, 0 if none is known. Where the short transfer is not
    slow, it is right for this one as well.
    """
    import torch

    task, device = end.task, end.device
    size = torch.zeros(1, dtype=torch.int64, device=device)
    exchange(end, torch.zeros(1, dtype=torch.uint8, device=device), 1 - sender)
    for first_bytes in (SHORT_FIRST_BYTES, FIRST_BYTES):
        part = torch.zeros(first_bytes, dtype=torch.uint8, device=device)
        began = time.perf_counter()
        exchange(end, part, sender)
        took_s = time.perf_counter() - began
        end.moved()
        if task.rank != sender:
            found = int(first_bytes / max(took_s, 1e-6) * task.transfer_s)
            is_told = first_bytes == FIRST_BYTES or took_s > PAIR_SLOW_FIRST_S
            size.fill_(max(LEAST_BYTES, min(task.most_bytes, found)) if is_told else back_bytes)
        exchange(end, size, 1 - sender)  # the receiver has measured, so it decides; 0: the long one
        if int(size.item()):
            break
    return int(size.item())


def _result(task: PairTask, size_bytes: int, streams: Sequence[Stream]) -> PairResult:
    """Return the rate of the streams.

    Together it is that of all counted parts, as a pair's share of a trunk changes from part to part. Else it is the
    middle mean, which a single disturbed part does not shift.
    """
    took_s = [max(took, 1e-9) for stream in streams for took in stream.took_s]
    if not took_s:
        return PairResult(task.number, rail=task.rail)
    transfer_s = fmean(took_s) if task.barrier_ranks else middle_mean(took_s)
    rate_gbit_s = size_bytes / transfer_s * 8 / 1e9
    wrong = sum(stream.wrong for stream in streams)
    return PairResult(
        task.number, rate_gbit_s, transfer_s, wrong, rail=task.rail, deviation=deviation_of(took_s)
    )


def _ring(end: End, size_bytes: int) -> PairResult:
    """Receive from the rank before and send to the one after, some parts without a pause, all ranks at once."""
    import torch
    import torch.distributed as dist

    task, device = end.task, end.device
    before, after = (task.rank - 1) % task.ranks, (task.rank + 1) % task.ranks
    sent, expected = (pattern(size_bytes, rank, device) for rank in (task.rank, before))
    buffers = [torch.zeros_like(expected) for _ in range(1 + task.transfers)]
    ends_s = [time.perf_counter()]
    for buffer in buffers:
        both = [dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, buffer, before)]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        synchronize(device)
        ends_s.append(time.perf_counter())
        end.moved()
    took_s = tuple(later - begin for begin, later in pairwise(ends_s[1:]))
    counted = Stream(took_s, wrong_bytes(end, buffers, expected))
    dist.all_reduce(torch.zeros(1, device=device))  # nobody leaves while its neighbour still reads
    synchronize(device)
    return _result(task, size_bytes, (counted,))
