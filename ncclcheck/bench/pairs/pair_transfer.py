"""The transfers of one pair, in a process of its own: first one way, then the other, with verified data.

Where both directions are wanted at once, and of more ranks, they are a ring, in which all send and receive at the same
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.gpu.device_id import device_id
from ncclcheck.bench.pairs.pair_company import Company
from ncclcheck.bench.pairs.pair_task import PairResult, PairTask
from ncclcheck.exchange.store.torch_versions import make_store
from ncclcheck.measure.isolation.pair_tests import deviation_of, middle_mean
from ncclcheck.timeouts import GROUP_CALL_S, PAIR_ROUND_TRIPS_S

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.distributed import Store

FIRST_BYTES = 1 << 20  # of the transfer that finds the size; it also takes what a shaper lets through at once
LEAST_BYTES = 1 << 16
LEAST_ROUND_TRIPS = 20  # however long they take
STREAM = 9  # counted parts of one stream: all of them lie in memory until they are verified
PERIOD = 251  # of the bytes, a prime: no part of a buffer equals another


class _End(Struct, frozen=True):
    """One end of a pair or a ring: its task, its device, and what tells the agent that it came further."""

    task: PairTask
    device: torch.device
    moved: Callable[[], object]


def measure_pair(task: PairTask, moved: Callable[[], object]) -> PairResult:
    """Measure with the other ranks; return what this one received. Raises RuntimeError of torch.

    `moved` is called whenever a part of a transfer went through or was verified.
    """
    device, store = _join(task)
    end = _End(task, device, moved)
    if task.ring_bytes:
        return _ring(end, task.ring_bytes)
    round_trip_us = _round_trip_us(task, device)
    company = Company(store, task, moved)
    if task.at_once:
        company.meet("both")
        found = _ring(end, _agreed_bytes(end, 0))
    else:
        found = _both_ways(end, company)
    return replace(found, round_trip_us=round_trip_us)


def _round_trip_us(task: PairTask, device: torch.device) -> float:
    """Return the shortest time of a byte there and back, to rank 0, which began it; 0 to the other, and of none.

    A byte of 1 comes back, the first 0 ends it.
    """
    import torch

    if not task.round_trips:
        return 0.0
    byte = torch.ones(1, dtype=torch.uint8, device=device)
    if task.rank:
        while True:
            _exchange(device, byte, 0, task.rank)
            if not int(byte.item()):
                return 0.0
            _exchange(device, byte, 1, task.rank)
    took_s: list[float] = []
    began = time.perf_counter()
    while len(took_s) <= task.round_trips and (
        len(took_s) < LEAST_ROUND_TRIPS or time.perf_counter() - began < PAIR_ROUND_TRIPS_S
    ):
        begin = time.perf_counter()
        _exchange(device, byte, 0, task.rank)
        _exchange(device, byte, 1, task.rank)
        took_s.append(time.perf_counter() - begin)
    _exchange(device, byte.zero_(), 0, task.rank)
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


def _both_ways(end: _End, company: Company) -> PairResult:
    """Measure one direction after the other, each together with the other pairs of the round."""
    import torch

    task = end.task
    received = PairResult(task.number, rail=task.rail)
    for sender in (0, 1):
        company.meet(str(sender))
        found = _one_way(end, sender)
        if task.rank != sender:
            received = found
    _exchange(end.device, torch.zeros(1, dtype=torch.uint8, device=end.device), 0, task.rank)
    return received


def _one_way(end: _End, sender: int) -> PairResult:
    """Transfer from `sender` to the other rank: once to find the size, then one stream of parts.

    The receiver times all parts but the first, from the end of a part to the end of the next. So no part begins after
    a pause, in which a queue or a shaper would save up what it lets through at once. Many parts are several streams.
    """
    transfers = end.task.transfers
    size_bytes = _agreed_bytes(end, sender)
    streams = [
        _stream(end, sender, size_bytes, 1 + min(STREAM, transfers - done))
        for done in range(0, transfers, STREAM)
    ]
    return _result(end.task, size_bytes, streams)


def _agreed_bytes(end: _End, sender: int) -> int:
    """Return the size of a transfer that takes long enough, by one from `sender` to the other rank."""
    import torch

    task, device = end.task, end.device
    size = torch.tensor([FIRST_BYTES], dtype=torch.int64, device=device)
    ends = _stream(end, sender, FIRST_BYTES, 1).ends_s
    if task.rank != sender:
        rate = FIRST_BYTES / max(ends[1] - ends[0], 1e-6)
        size.fill_(max(LEAST_BYTES, min(task.most_bytes, int(rate * task.transfer_s))))
    _exchange(device, size, 1 - sender, task.rank)  # the receiver has measured, so it decides
    return int(size.item())


def _result(task: PairTask, size_bytes: int, streams: Sequence[_Stream]) -> PairResult:
    """Return the rate of the streams: the middle mean of their parts, each without its first one."""
    took_s = [max(end - begin, 1e-9) for stream in streams for begin, end in pairwise(stream.ends_s[1:])]
    transfer_s = middle_mean(took_s)
    rate_gbit_s = size_bytes / transfer_s * 8 / 1e9
    wrong = sum(stream.wrong for stream in streams)
    return PairResult(
        task.number, rate_gbit_s, transfer_s, wrong, rail=task.rail, deviation=deviation_of(took_s)
    )


def _ring(end: _End, size_bytes: int) -> PairResult:
    """Receive from the rank before and send to the one after, some parts without a pause, all ranks at once."""
    import torch
    import torch.distributed as dist

    task, device = end.task, end.device
    before, after = (task.rank - 1) % task.ranks, (task.rank + 1) % task.ranks
    sent, expected = (_pattern(size_bytes, rank, device) for rank in (task.rank, before))
    buffers = [torch.zeros_like(expected) for _ in range(1 + task.transfers)]
    ends_s = [time.perf_counter()]
    for buffer in buffers:
        both = [dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, buffer, before)]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        _synchronize(device)
        ends_s.append(time.perf_counter())
        end.moved()
    stream = _Stream(tuple(ends_s), _wrong(end, buffers, expected))
    dist.all_reduce(torch.zeros(1, device=device))  # nobody leaves while its neighbour still reads
    _synchronize(device)
    return _result(task, size_bytes, (stream,))


class _Stream(Struct, frozen=True):
    """When the stream began and each of its parts had arrived, and how many bytes were wrong, to the receiver."""

    ends_s: tuple[float, ...]
    wrong: int


def _stream(end: _End, sender: int, size_bytes: int, parts: int) -> _Stream:
    """Send so many parts without a pause; the receiver compares them when all are there."""
    import torch

    task, device = end.task, end.device
    expected = _pattern(size_bytes, sender, device)
    go = torch.zeros(1, dtype=torch.uint8, device=device)
    _exchange(device, go, 1 - sender, task.rank)
    ends_s = [time.perf_counter()]
    if task.rank == sender:
        for _ in range(parts):
            _exchange(device, expected, sender, task.rank)
            end.moved()
        return _Stream((ends_s[0],) * (parts + 1), 0)
    buffers = [torch.zeros_like(expected) for _ in range(parts)]
    for buffer in buffers:
        _exchange(device, buffer, sender, task.rank)
        ends_s.append(time.perf_counter())
        end.moved()
    return _Stream(tuple(ends_s), _wrong(end, buffers, expected))


def _wrong(end: _End, buffers: Sequence[Tensor], expected: Tensor) -> int:
    """Return how many bytes are not those expected: counted only where some are, which takes six times as long."""
    import torch

    wrong = 0
    for buffer in buffers:
        if not torch.equal(buffer, expected):
            wrong += int((buffer != expected).sum().item())
        end.moved()
    return wrong


def _pattern(size_bytes: int, sender: int, device: torch.device) -> Tensor:
    """Return bytes that differ by place and sender."""
    import torch

    table = (torch.arange(PERIOD, device=device) + sender * 7).to(torch.uint8)
    return table.repeat(size_bytes // PERIOD + 1)[:size_bytes].contiguous()


def _exchange(device: torch.device, buffer: Tensor, sender: int, rank: int) -> None:
    """Send the buffer from `sender` to the other rank, and wait for it."""
    import torch.distributed as dist

    way, peer = (dist.isend, 1 - sender) if rank == sender else (dist.irecv, sender)
    for work in dist.batch_isend_irecv([dist.P2POp(way, buffer, peer)]):
        work.wait()
    _synchronize(device)


def _synchronize(device: torch.device) -> None:
    """Wait until a GPU has done all that it was given."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
