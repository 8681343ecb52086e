"""How fast GPUs send to each other: every rail between the nodes, and pairs inside each node, timed by GPU events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.bench.agreement import barrier
from ncclcheck.bench.gathering import all_gather
from ncclcheck.bench.point import BenchRank
from ncclcheck.measure.blame import slow_links
from ncclcheck.measure.links.rails import RankPair, inside_rounds, rail_rounds, slow_rails
from ncclcheck.model.bench import LinkSpeed

if TYPE_CHECKING:
    from torch import Tensor

# A card of 400 Gbit/s takes 2.7 ms for it: below some 64 MiB the start of a transfer counts.
TRANSFER_BYTES = 128 << 20
_PILOT_BYTES, _LEAST_BYTES = 8 << 20, 1 << 20
_TRANSFERS = 4
_MOST_PASSES = 3  # of what looks slow


class _Lane(Struct, frozen=True):
    """A rank, and memory of its GPU for a buffer to send and one to receive."""

    rank: BenchRank
    scratch: Tensor


def gpu_links(rank: BenchRank, scratch: Tensor) -> tuple[LinkSpeed, ...]:
    """Return the speed of each rail in both directions, and of pairs inside each node; the same on every rank."""
    hosts, lane = rank.task.hosts, _Lane(rank, scratch)
    return (*_settled(lane, rail_rounds(hosts)), *_settled(lane, inside_rounds(hosts)))


def _settled(lane: _Lane, rounds: Sequence[Sequence[RankPair]]) -> tuple[LinkSpeed, ...]:
    """Return the best of a few passes where something looks slow: a passing disturbance does not last."""
    if not rounds:
        return ()
    size_bytes = _agreed_bytes(lane, rounds[0])
    best = _measured(lane, rounds, size_bytes)
    for _ in range(_MOST_PASSES - 1):
        if not slow_rails(best) and not any(slow_links(best)):
            break
        again = _measured(lane, rounds, size_bytes)
        best = tuple(a if a.gb_s >= b.gb_s else b for a, b in zip(best, again, strict=True))
    return best


def _agreed_bytes(lane: _Lane, pairs: Sequence[RankPair]) -> int:
    """Return the size of a transfer: 128 MiB, or less where the fastest of these links has less than 21 Gbit/s.

    Transfers of 8 MiB tell how fast they are, on every rank alike.
    """
    room: int = lane.scratch.numel() // 2
    pilot = _measured(lane, [pairs], min(_PILOT_BYTES, room))
    affordable = int(max(link.gb_s for link in pilot) * 1e9 * timeouts.ISOLATED_PAIR_S / _TRANSFERS)
    return min(room, TRANSFER_BYTES, max(_LEAST_BYTES, affordable))


def _measured(lane: _Lane, rounds: Sequence[Sequence[RankPair]], size_bytes: int) -> tuple[LinkSpeed, ...]:
    hosts = lane.rank.task.hosts
    rows = _shared(lane.rank, [_round(lane, pairs, size_bytes) for pairs in rounds])
    return tuple(
        LinkSpeed(source, hosts[source], target, hosts[target], round(rows[target][number], 6))
        for number, pairs in enumerate(rounds)
        for source, target in pairs
    )


def _round(lane: _Lane, pairs: Sequence[RankPair], size_bytes: int) -> float:
    """Return the 1e9 B/s with which this rank received; 0 where it did not.

    All transfers of a pair are enqueued before the first is waited for, so no host is between them. The first one
    connects; the event after it is where the clock begins.
    """
    import torch

    rank, own_rank = lane.rank, lane.rank.task.rank
    barrier(rank.device, rank.progress)
    rank.progress.enter()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(1 + _TRANSFERS)]
    is_receiver = False
    for source, target in pairs:
        if own_rank in (source, target):
            is_receiver = own_rank == target
            for event in events:
                _enqueue(lane, size_bytes, source if is_receiver else target, is_receiver=is_receiver)
                event.record()
    rank.device.synchronize(rank.progress)
    rank.progress.leave(measured=False)
    if not is_receiver:
        return 0.0
    took_ms: float = min(began.elapsed_time(ended) for began, ended in pairwise(events))
    return size_bytes / max(took_ms, 1e-6) / 1e6


def _enqueue(lane: _Lane, size_bytes: int, peer: int, *, is_receiver: bool) -> None:
    """Enqueue a transfer, for which the current stream waits. As a batch: NCCL then uses the group's communicator."""
    import torch.distributed as dist

    buffer = lane.scratch[-size_bytes:] if is_receiver else lane.scratch[:size_bytes]
    call = dist.irecv if is_receiver else dist.isend
    for work in dist.batch_isend_irecv([dist.P2POp(call, buffer, peer)]):
        work.wait()


def _shared(rank: BenchRank, numbers: Sequence[float]) -> list[list[float]]:
    """Return every rank's numbers, by rank."""
    import torch

    device = rank.device.torch_device
    sent = torch.tensor(list(numbers), dtype=torch.float64, device=device)
    received = torch.empty(rank.task.world_size * len(numbers), dtype=torch.float64, device=device)
    rank.progress.enter()
    all_gather(sent, received)
    rank.device.synchronize(rank.progress)
    rows: list[list[float]] = received.cpu().view(rank.task.world_size, -1).tolist()
    rank.progress.leave(measured=False)
    return rows
