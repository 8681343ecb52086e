"""Each rank and each link alone, after the collectives: the cause is slow there, too, and its victims are not."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.agreement import barrier
from ncclcheck.bench.gathering import all_gather
from ncclcheck.bench.gpu.gpu_alone import gpu_speeds
from ncclcheck.bench.gpu.gpu_links import gpu_links
from ncclcheck.bench.point import BenchRank
from ncclcheck.measure.blame import are_distinguishable, slow_cores, slow_links, slow_ranks
from ncclcheck.measure.links.pairing import rounds_of_pairs
from ncclcheck.model.bench import CoreSpeed, Isolation, LinkSpeed, Point

if TYPE_CHECKING:
    from torch import Tensor

LEAST_BYTES, MOST_BYTES = 1 << 20, 8 << 20
MOST_TRANSFERS = 4
SLOTS = 16  # so many ranks work one after the other; further ones at the same time as one of them
WORK_BYTES, WORK_TIMES = 64 << 10, 1500  # some 25 ms
TRIES = 2
PROOF = 3  # times the work, where a core seems to be shared
LEAST_PROOFS, MOST_PROOFS = 3, 8
FEW_SLOTS = 3
MOST_PASSES = 4  # over the links


class _Lane(Struct, frozen=True):
    """The ranks whose links are measured: one of each node."""

    ranks: tuple[int, ...]


def isolate(rank: BenchRank, points: Sequence[Point]) -> Isolation:
    """Measure how fast each rank, GPU and link between nodes is alone; the result is the same on every rank.

    What looks slow is tried again, and the best try counts: a passing disturbance does not last, a slow link or an
    occupied core does.
    """
    rank.progress.move("isolating")
    cores = _settled_cores(rank, points)
    if rank.device.gpu is not None:
        gpus = gpu_speeds(rank, rank.device.gpu)
        return Isolation(cores, gpu_links(rank, rank.device.gpu.scratch), gpus)
    lane = _lane(rank)
    if len(lane.ranks) == 1:
        return Isolation(cores)
    size_bytes = transfer_bytes(points)
    links = _links(rank, lane, size_bytes)
    for _ in range(MOST_PASSES - 1):
        if not any(slow_links(links)):
            break
        links = _better_links(links, _links(rank, lane, size_bytes))
    return Isolation(cores, links)


def transfer_bytes(points: Sequence[Point]) -> int:
    """Return the size of one transfer: some 20 ms at the best rate of the collectives."""
    busbw_gb_s = max((point.busbw_gb_s for point in points), default=0.0)
    return max(LEAST_BYTES, min(MOST_BYTES, int(busbw_gb_s * 1e9 * timeouts.ISOLATED_TRANSFER_S)))


def _settled_cores(rank: BenchRank, points: Sequence[Point]) -> tuple[CoreSpeed, ...]:
    """Return how fast each rank works alone, tried until it is clear which ranks have a core of their own.

    The first try is short, and Linux lets a thread that slept run for a slice or two before others
    (Documentation/scheduler/sched-eevdf.rst: lag), which is half of so little work; and a quota may just have enough
    left for it. So where a core seems to be shared, or was during the collectives, three times the work is done, three
    times at least, and that alone counts. Disturbed ranks that nobody would name are tried again, too: the slow one is
    compared with them.
    """
    first = _cores(rank, TRIES, WORK_TIMES)
    crowded = any(slow_rank.how == "crowded" for slow_rank in slow_ranks(points))
    if are_distinguishable(first) and not slow_cores(first) and not crowded:
        return first
    cores = _cores(rank, 1, PROOF * WORK_TIMES)
    for done in range(1, most_proofs(rank.task.world_size)):
        if done >= LEAST_PROOFS and are_distinguishable(cores):
            break
        cores = _better_cores(cores, _cores(rank, 1, PROOF * WORK_TIMES))
    return cores


def most_proofs(world_size: int) -> int:
    """Return how many tries take about four seconds where every rank has half a core, at least three."""
    return max(LEAST_PROOFS, min(MOST_PROOFS, MOST_PROOFS * FEW_SLOTS // min(SLOTS, world_size)))


def _cores(rank: BenchRank, tries: int, times: int) -> tuple[CoreSpeed, ...]:
    """Return how fast each rank works, by the best of these tries; the times are those of `WORK_TIMES`."""
    task = rank.task
    best = (float("inf"), float("inf"), 0.0)
    data = bytes(WORK_BYTES)
    for _ in range(tries):
        for slot in range(min(SLOTS, task.world_size)):
            barrier(rank.device, rank.progress)
            if task.rank % SLOTS == slot:
                work_us, core_us = _work(data, times)
                share = min(1.0, core_us / work_us)
                best = (min(best[0], work_us), min(best[1], core_us), max(best[2], share))
    rows = _shared(rank, [*best, claim_on_cores()])
    return tuple(
        CoreSpeed(
            number, task.hosts[number], round(work_us, 1), round(core_us, 1), int(claim), round(share, 3)
        )
        for number, (work_us, core_us, share, claim) in enumerate(rows)
    )


def claim_on_cores() -> int:
    """Return a number that is the same for processes that the kernel schedules alike: see `CoreSpeed.claim`.

    The same machine, cores, priority and control groups; 0 where one of them cannot be read.
    """
    with suppress(OSError):
        machine = Path("/proc/sys/kernel/random/boot_id").read_text()
        cores, policy = sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0)
        groups = Path("/proc/self/cgroup").read_text()
        return zlib.crc32(f"{machine}{cores}{policy} {os.getpriority(os.PRIO_PROCESS, 0)}{groups}".encode())
    return 0


def _work(data: bytes, times: int) -> tuple[float, float]:
    """Return microseconds by the clock, and of the core, for `WORK_TIMES` of `times` pieces of work."""
    began, began_core = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(times):
        zlib.crc32(data)
    core, now = time.thread_time_ns() - began_core, time.perf_counter_ns()
    part = WORK_TIMES / times
    return (now - began) / 1e3 * part, core / 1e3 * part


def _better_cores(before: Sequence[CoreSpeed], again: Sequence[CoreSpeed]) -> tuple[CoreSpeed, ...]:
    return tuple(
        replace(
            b,
            work_us=min(a.work_us, b.work_us),
            core_us=min(a.core_us, b.core_us),
            core_share=max(a.core_share, b.core_share),
        )
        for a, b in zip(before, again, strict=True)
    )


def _lane(rank: BenchRank) -> _Lane:
    """Return the first rank of each node: several at a time would share the interface of their node."""
    first: dict[str, int] = {}
    for number, host in enumerate(rank.task.hosts):
        first.setdefault(host, number)
    return _Lane(tuple(first.values()))


def _links(rank: BenchRank, lane: _Lane, size_bytes: int) -> tuple[LinkSpeed, ...]:
    """Measure every pair in a few rounds; a rank without a partner in a round waits at its end."""
    import torch

    own_rank = rank.task.rank
    buffer = torch.zeros(size_bytes, dtype=torch.uint8, device=rank.device.torch_device)
    rounds = [
        [(lane.ranks[first], lane.ranks[second]) for first, second in pairs]
        for pairs in rounds_of_pairs(len(lane.ranks))
    ]
    found = []
    for pairs in rounds:
        barrier(rank.device, rank.progress)
        busy = _Busy(rank)
        speed = 0.0
        rank.progress.enter()
        for source, target in pairs:
            if own_rank == source:
                _send(rank, buffer, target)
            elif own_rank == target:
                speed = _receive(rank, buffer, source)
        found += [speed, busy.share()]
        rank.progress.leave(measured=False)
    rows = _shared(rank, found)
    return tuple(
        LinkSpeed(
            source,
            rank.task.hosts[source],
            target,
            rank.task.hosts[target],
            round(rows[target][2 * number], 6),
            round(min(1.0, rows[source][2 * number + 1] + rows[target][2 * number + 1]), 2),
        )
        for number, pairs in enumerate(rounds)
        for source, target in pairs
    )


class _Busy:
    """The share of the time since its creation in which this process computed, or waited for a core."""

    def __init__(self, rank: BenchRank) -> None:
        self._rank = rank
        self._began_s, self._computed_s = time.perf_counter(), time.process_time()
        rank.heartbeat.take()

    def share(self) -> float:
        """Return the share of the time, from 0 to 1."""
        computed_s = time.process_time() - self._computed_s
        waited_s = self._rank.heartbeat.take().waited_s
        return min(1.0, (computed_s + waited_s) / (time.perf_counter() - self._began_s))


def _send(rank: BenchRank, buffer: Tensor, target: int) -> None:
    """Send the buffer as often as the receiver asks for it."""
    import torch

    go = torch.zeros(1, dtype=torch.uint8, device=rank.device.torch_device)
    while True:
        _transfer("irecv", go, target)
        if not int(go.item()):
            return
        _transfer("isend", buffer, target)


def _receive(rank: BenchRank, buffer: Tensor, source: int) -> float:
    """Return 1e9 B/s of the best of a few transfers, each timed from its request; the first one connects."""
    import torch

    go = torch.ones(1, dtype=torch.uint8, device=rank.device.torch_device)
    took_s: list[float] = []
    while len(took_s) < MOST_TRANSFERS and sum(took_s) < timeouts.ISOLATED_PAIR_S:
        began = time.perf_counter()
        _transfer("isend", go, source)
        _transfer("irecv", buffer, source)
        took_s.append(time.perf_counter() - began)
    _transfer("isend", go.zero_(), source)
    size_bytes: int = buffer.numel()
    return size_bytes / 1e9 / min(took_s[1:] or took_s)


def _transfer(operation: str, buffer: Tensor, peer: int) -> None:
    """Transfer the buffer and wait for it."""
    import torch.distributed as dist

    for work in dist.batch_isend_irecv([dist.P2POp(getattr(dist, operation), buffer, peer)]):
        work.wait()


def _better_links(before: Sequence[LinkSpeed], again: Sequence[LinkSpeed]) -> tuple[LinkSpeed, ...]:
    return tuple(a if a.gb_s >= b.gb_s else b for a, b in zip(before, again, strict=True))


def _shared(rank: BenchRank, numbers: Sequence[float]) -> list[list[float]]:
    """Return every rank's numbers, by rank."""
    import torch

    sent = torch.tensor(list(numbers), dtype=torch.float64, device=rank.device.torch_device)
    received = torch.empty(
        rank.task.world_size * len(numbers), dtype=torch.float64, device=rank.device.torch_device
    )
    rank.progress.enter()
    all_gather(sent, received)
    rank.device.synchronize(rank.progress)
    rows: list[list[float]] = received.cpu().view(rank.task.world_size, -1).tolist()
    rank.progress.leave(measured=False)
    return rows
