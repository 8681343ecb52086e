"""A soak on one rank: block after block, each the same collective for some seconds, and rounds of pairs in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.agreement import BatchReport, exchange
from ncclcheck.bench.gathering import gather_documents
from ncclcheck.bench.point import (
    BenchRank,
    PointSetup,
    first_call,
    own_report,
    rank_0_clock_s,
    run_batch,
    set_up,
    warm_up,
)
from ncclcheck.bench.point_result import times_us
from ncclcheck.bench.soak.node_counts import CounterReader, merged, of_gpu, packed
from ncclcheck.bench.soak.pair_blocks import LEAST_BYTES, MOST_BYTES, first_ranks, measure_turns
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.measure.links.pairing import turns_of
from ncclcheck.measure.soak.lines import is_sound_of_node
from ncclcheck.measure.soak.series_events import SoakJudge
from ncclcheck.measure.soak.soak_limits import FIRST_TURNS, PAIRS_EVERY
from ncclcheck.measure.soak.spread import times_of
from ncclcheck.measure.soak.tails import RankIdle, longest, tails_of
from ncclcheck.model.bench import Op
from ncclcheck.model.benchmarks.soak import NodeCounts, SoakBlock, SoakPlan, SoakStart, SoakTail
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import SOAK_LONGEST_BLOCK_S, SOAK_PART_S

SUSPECT_TURNS = 3  # each node is paired with three others, which shows whether it is the cause
USUAL_TURNS = 9  # are repeated: only a pair that was measured before shows a change
SUSPECT_PAIRS = 3  # rounds of pairs of one drop
_BETWEEN = 3  # blocks between these
_MOST_ITERATION = 1 << 30
_Kind = Literal["end", "times", "pairs"]
_KINDS: tuple[_Kind, ...] = ("end", "times", "pairs")


class _Next(Struct, frozen=True):
    """What all ranks do next, as rank 0 says it: of `times` the place of the collective, of `pairs` the turn."""

    kind: _Kind
    place: int = 0
    turns: int = 0
    part_bytes: int = 0


def run_soak(rank: BenchRank, plan: SoakPlan, write: Callable[[bytes], None]) -> None:
    """Measure blocks until the time is over, each written by rank 0 as soon as it is known."""
    soak = _OwnSoak(rank, plan)
    lead = _Lead(rank, plan, soak.ops)
    number = plan.first
    while True:
        planned = soak.agreed(lead.following(number))
        if planned.kind == "end":
            return
        block = soak.measured(planned, number)
        if rank.task.rank == 0:
            write(encode(block) + b"\n")
        lead.take(block)
        soak.rest(block)
        number += 1


class _Lead:
    """What rank 0 decides from the blocks so far. A class because it judges as they come; others only follow it."""

    def __init__(self, rank: BenchRank, plan: SoakPlan, ops: Sequence[Op]) -> None:
        task = rank.task
        self._plan, self._ops = plan, ops
        members = len(first_ranks(task.hosts))
        self._has_pairs, self._turns = members > 1, min(USUAL_TURNS, turns_of(members))
        self._size_bytes, self._world_size = task.plan.sizes_bytes[0], task.world_size
        self._ends = time.monotonic() + plan.duration_s
        self._judge = SoakJudge()
        self._judge.feed(
            SoakStart("", "", time.time(), "", "", task.hosts, tuple(ops), self._size_bytes, plan)
        )
        self._calm = self._again = self._times = self._suspect_pairs = 0
        self._turn = 0  # so many turns were measured before
        self._since_pairs: int | None = None  # blocks; None: no pairs were measured yet
        self._median_us = 0.0
        self._is_over = False

    def take(self, block: SoakBlock) -> None:
        """Judge the block."""
        self._judge.feed(block)
        self._is_over = self._is_over or block.wrong > 0
        self._is_over = self._is_over or (self._plan.until_finding and self._judge.events > 0)
        if block.op is None:
            self._since_pairs = 0
        else:
            self._times += 1
            self._median_us = block.median_us
            self._since_pairs = None if self._since_pairs is None else self._since_pairs + 1
        if not self._judge.is_suspect:
            self._suspect_pairs = 0

    def following(self, number: int) -> _Next:
        """Return what comes next."""
        if self._is_over or time.monotonic() >= self._ends:
            return _Next("end")
        suspect = self._judge.is_suspect
        if not self._has_pairs or not self._times:
            return _Next("times", number % len(self._ops))
        if self._since_pairs is None:
            return self._calm_pairs(
                min(FIRST_TURNS, self._turns)
            )  # so that there is something to compare with
        is_due = self._suspect_pairs == 0 or self._since_pairs >= _BETWEEN
        if suspect and self._suspect_pairs < SUSPECT_PAIRS and is_due:
            self._suspect_pairs += 1
            first = self._again % max(1, self._turn - SUSPECT_TURNS + 1)
            self._again += SUSPECT_TURNS
            return self._pairs(first, SUSPECT_TURNS)
        if self._since_pairs >= PAIRS_EVERY - 1:
            return self._calm_pairs(1)
        return _Next("times", self._times % len(self._ops))

    def _calm_pairs(self, turns: int) -> _Next:
        """Return turns that make more pairs known, or those that were known for the longest time."""
        first = self._calm % self._turns
        self._calm += turns
        self._turn = min(self._turns, max(self._turn, first + turns))
        return self._pairs(first, turns)

    def _pairs(self, first: int, turns: int) -> _Next:
        rate = self._size_bytes / max(self._median_us, 1.0) * 1e6  # bytes per second, about
        part_bytes = max(LEAST_BYTES, min(MOST_BYTES, int(rate * SOAK_PART_S)))
        return _Next("pairs", first, turns, part_bytes)


class _OwnSoak:
    """This rank's part. A class because buffers, iteration numbers and counters go on from block to block."""

    def __init__(self, rank: BenchRank, plan: SoakPlan) -> None:
        self._rank, self._plan = rank, plan
        self._setups: list[PointSetup] = []
        self.ops: list[Op] = []
        for number, op in enumerate(rank.task.plan.ops):
            setup = set_up(rank, COLLECTIVES[op], rank.task.plan.sizes_bytes[0], number)
            first = first_call(rank, setup)
            if isinstance(first, Missing):
                raise RuntimeError(f"{rank.task.plan.backend} does not do {op}: {first.detail}")
            warm_up(rank, setup, rank.task.plan.warmup)
            self._setups.append(setup)
            self.ops.append(op)
        self._iteration = 0
        self._usual_us = [0.0] * len(self._setups)
        own_rank, hosts = rank.task.rank, rank.task.hosts
        self._reader = CounterReader(hosts[own_rank]) if own_rank in first_ranks(hosts) else None
        if rank.device.gpu is not None:
            rank.device.gpu.health.look()  # from now on

    def agreed(self, planned: _Next) -> _Next:
        """Return what rank 0 plans."""
        numbers = [float(_KINDS.index(planned.kind)), planned.place, planned.turns, planned.part_bytes]
        report = own_report(self._rank, [0.0, *numbers])
        kind, *of_it = exchange(report, self._rank.device, self._rank.progress)[0].durations_us
        place, turns, part_bytes = map(int, of_it)
        return _Next(_KINDS[int(kind)], place, turns, part_bytes)

    def measured(self, planned: _Next, number: int) -> SoakBlock:
        """Return the block, the same on every rank but for the clock."""
        at_s, began = time.time(), time.monotonic()
        if planned.kind == "pairs":
            self._rank.progress.move("measuring", 0, self._iteration)
            pairs = measure_turns(self._rank, planned.place, planned.turns, planned.part_bytes)
            took_s = time.monotonic() - began
            nodes = self._counts()
            return SoakBlock(number, round(at_s, 3), round(took_s, 3), nodes=nodes, pairs=pairs)
        times, tails, wrong = self._times(planned.place)
        took_s = time.monotonic() - began
        return SoakBlock(
            number,
            round(at_s, 3),
            round(took_s, 3),
            self.ops[planned.place],
            len(times),
            round(median(times), 2),
            round(max(times), 2),
            sum(wrong.values()),
            tuple(rank for rank, count in sorted(wrong.items()) if count),
            longest(tails),
            self._counts(),
            times=times_of(times),
        )

    def rest(self, block: SoakBlock) -> None:
        """Leave the network to others for the part of the time that is theirs."""
        if self._plan.duty < 1.0:
            self._rank.progress.move("waiting")
            time.sleep(rest_s(self._plan, block))

    def _times(self, place: int) -> tuple[list[float], list[SoakTail], dict[int, int]]:
        """Return the times of the block's iterations, the long ones, and how many elements each rank found wrong."""
        setup, share_s = self._setups[place], self._plan.every_s * self._plan.duty
        usual_us = self._usual_us[place]
        times: list[float] = []
        tails: list[SoakTail] = []
        wrong: dict[int, int] = {}
        began_s: float | None = None
        while True:
            batch = self._batch(setup, self._room(setup, usual_us, share_s))
            now_s = rank_0_clock_s(batch)
            began_s = now_s - _took_s(batch) if began_s is None else began_s
            batch_times = times_us(batch)
            times += batch_times
            usual_us = usual_us or median(times)
            found = tails_of(
                [[report.lead_in_us, *report.durations_us] for report in batch],
                [RankIdle(report.stalled_us, report.waited_us) for report in batch],
                usual_us,
                together=COLLECTIVES[self.ops[place]].ends_together,
            )
            tails = list(longest([*tails, *found]))
            for rank, report in enumerate(batch):
                wrong[rank] = wrong.get(rank, 0) + int(report.wrong)
            if now_s - began_s >= share_s or any(wrong.values()):
                break
        self._usual_us[place] = median(times)
        return times, tails, wrong

    def _room(self, setup: PointSetup, usual_us: float, share_s: float) -> int:
        """Return how many iterations of the next batch: a block has several, so that it ends in time."""
        if not usual_us:
            return 1
        return max(1, min(len(setup.slots), int(share_s / 4 / (usual_us / 1e6))))

    def _batch(self, setup: PointSetup, size: int) -> list[BatchReport]:
        iterations = range(self._iteration + 1, self._iteration + 1 + size)
        self._iteration = (self._iteration + size) % _MOST_ITERATION
        return run_batch(self._rank, setup, "measuring", iterations)

    def _counts(self) -> tuple[NodeCounts, ...]:
        """Return what every node counted during the block; a node that says nothing readable counted nothing."""
        rank = self._rank
        rank.progress.move("agreeing", None, self._iteration)
        own_document = self._own_counts()
        rank.progress.enter()
        documents = gather_documents(own_document, rank.task.world_size, rank.device, rank.progress)
        rank.progress.leave(measured=False)
        found = []
        for host, document in zip(rank.task.hosts, documents, strict=True):
            try:
                counts = decode(document, NodeCounts)
            except DecodeError:
                continue
            if is_sound_of_node(counts):
                found.append(replace(counts, host=host))
        return merged(found)

    def _own_counts(self) -> bytes:
        """Return the counts of this rank's GPU; from the first rank of a node also all other counts there."""
        device, task = self._rank.device, self._rank.task
        host, parts = task.hosts[task.rank], []
        if self._reader is not None:
            parts.append(self._reader.grown())
        if device.gpu is not None:
            look = device.gpu.health.look()
            parts.append(of_gpu(host, task.local_rank, look, device.conditions().clock_mhz))
        return packed(merged(parts)[0]) if parts else b""


def rest_s(plan: SoakPlan, block: SoakBlock) -> float:
    """Return how long to rest after a block: a round of pairs takes as long as it takes, and has its share, too."""
    usual_s = plan.every_s * (1 - plan.duty)
    return usual_s if block.op else min(block.seconds * (1 - plan.duty) / plan.duty, SOAK_LONGEST_BLOCK_S)


def _took_s(batch: Sequence[BatchReport]) -> float:
    return sum(times_us(batch)) / 1e6
