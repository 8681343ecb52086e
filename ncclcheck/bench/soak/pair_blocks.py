"""A round of pairs among the blocks of a soak: one rank of each node sends to another's, in both directions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ncclcheck.bench.agreement import barrier, exchange
from ncclcheck.bench.point import BenchRank, own_report
from ncclcheck.measure.isolation.pair_tests import middle_mean
from ncclcheck.measure.links.pairing import Pair, pairs_of_turn, turns_of
from ncclcheck.model.benchmarks.soak import SoakPair

if TYPE_CHECKING:
    from torch import Tensor

PARTS = 13  # of a transfer; the first one fills the path and is not counted
LEAST_BYTES, MOST_BYTES = 64 << 10, 8 << 20  # of a part


def first_ranks(hosts: Sequence[str]) -> tuple[int, ...]:
    """Return the first rank of each host: several at a time would share the interface of their node."""
    first: dict[str, int] = {}
    for number, host in enumerate(hosts):
        first.setdefault(host, number)
    return tuple(first.values())


def measure_turns(rank: BenchRank, first_turn: int, turns: int, part_bytes: int) -> tuple[SoakPair, ...]:
    """Measure so many turns of the tournament of all nodes; the result is the same on every rank."""
    members = first_ranks(rank.task.hosts)
    every = turns_of(len(members))
    rounds: list[tuple[Pair, ...]] = []
    for turn in range(first_turn, first_turn + min(turns, every)):
        pairs = pairs_of_turn(len(members), turn % every)
        rounds += [pairs, tuple((right, left) for left, right in pairs)]
    transfers = [_transfer_of_round(rank, members, pairs, part_bytes) for pairs in rounds]
    numbers = [*(transfer.gbit_s for transfer in transfers), *(transfer.waited for transfer in transfers)]
    reports = exchange(own_report(rank, [0.0, *numbers]), rank.device, rank.progress)
    hosts, count = rank.task.hosts, len(rounds)
    found = []
    for number, pairs in enumerate(rounds):
        for source, target in pairs:
            sent, received = (reports[members[end]].durations_us for end in (source, target))
            waited = max(sent[count + number], received[count + number])
            ends = hosts[members[source]], hosts[members[target]]
            found.append(SoakPair(*ends, round(received[number], 6), round(waited, 4)))
    return tuple(found)


class _Transfer(NamedTuple):
    """The rate in 1e9 bit/s at which this rank received, 0 where it did not, and for which part it did not run."""

    gbit_s: float = 0.0
    waited: float = 0.0


def _transfer_of_round(
    rank: BenchRank, members: Sequence[int], pairs: Sequence[Pair], part_bytes: int
) -> _Transfer:
    """Return this rank's transfer of the round."""
    import torch

    barrier(rank.device, rank.progress)
    own_rank, found = rank.task.rank, 0.0
    rank.heartbeat.take()
    began_s = time.perf_counter()
    rank.progress.enter()
    for source, target in pairs:
        if own_rank not in (members[source], members[target]):
            continue
        buffer = torch.zeros(part_bytes, dtype=torch.uint8, device=rank.device.torch_device)
        if own_rank == members[source]:
            _stream("isend", buffer, members[target], rank)
        else:
            found = _rate(part_bytes, _stream("irecv", buffer, members[source], rank))
    rank.progress.leave(measured=False)
    idle, took_s = rank.heartbeat.take(), time.perf_counter() - began_s
    return _Transfer(found, min(1.0, (idle.waited_s + idle.stood_s) / max(took_s, 1e-9)))


def _stream(operation: str, buffer: Tensor, peer: int, rank: BenchRank) -> list[float]:
    """Transfer the parts without a pause; return when each had arrived."""
    import torch.distributed as dist

    ends = []
    for _ in range(PARTS):
        for work in dist.batch_isend_irecv([dist.P2POp(getattr(dist, operation), buffer, peer)]):
            work.wait()
        rank.device.synchronize(rank.progress)
        ends.append(time.perf_counter())
    return ends


def _rate(part_bytes: int, ends: Sequence[float]) -> float:
    took_s = middle_mean([end - begin for begin, end in pairwise(ends)])
    return part_bytes * 8 / 1e9 / max(took_s, 1e-9)
