"""Series of a soak: blocks of four nodes, and what may happen in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ncclcheck.measure.soak.series_events import judged
from ncclcheck.measure.soak.spread import times_of
from ncclcheck.model.benchmarks.soak import (
    NodeCounts,
    Soak,
    SoakBlock,
    SoakEnd,
    SoakLine,
    SoakPair,
    SoakPlan,
    SoakStart,
)
from ncclcheck.model.report import Report, Tool
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.options import RunOptions
from ncclcheck.run.replay import replay
from tests.bench_builders import bench_result
from tests.hardware_builders import rdma_cluster as cluster

BEGAN = 1_700_000_000.0
HOSTS = ("node01", "node02", "node03", "node04")
READ = tuple(NodeCounts(host, carriers=1) for host in HOSTS)
PLAN = SoakPlan(3600.0, 10.0, 0.05, 1.0)


def soak_start(at_s: float = BEGAN) -> SoakStart:
    """The first line: four ranks on four nodes."""
    return SoakStart("1", "0", at_s, "gloo", "tcp", HOSTS, ("all_reduce",), 1 << 26, PLAN)


def soak_block(number: int, median_us: float = 1000.0, **changes: Any) -> SoakBlock:
    """A block of 10 s."""
    at_s = changes.pop("at_s", BEGAN + 10.0 * number)
    times = times_of([median_us] * 100)
    changes.setdefault("nodes", READ)
    return SoakBlock(number, at_s, 10.0, "all_reduce", 100, median_us, 2 * median_us, times=times, **changes)


def pairs_block(number: int, slow_senders: Iterable[str] = (), part: float = 0.85) -> SoakBlock:
    """A round of all pairs, in which what these nodes send is slower."""
    slow = set(slow_senders)
    pairs = tuple(
        SoakPair(source, target, part if source in slow else 1.0)
        for source in HOSTS
        for target in HOSTS
        if source != target
    )
    return SoakBlock(number, BEGAN + 10.0 * number, 10.0, nodes=READ, pairs=pairs)


def healthy_lines(blocks: int = 40) -> list[SoakLine]:
    """A series with small noise, pairs among it, and its end."""
    lines: list[SoakLine] = [soak_start(), pairs_block(0)]
    lines += [soak_block(number, 1000.0 + number % 5) for number in range(1, blocks)]
    return [*lines, SoakEnd(BEGAN + 10.0 * blocks, is_finished=True)]


def dropped_lines() -> list[SoakLine]:
    """Node 2 sends 15 % less from block 20 to block 30."""
    lines: list[SoakLine] = healthy_lines(60)
    for number in range(20, 30):
        lines[number + 1] = soak_block(number, 1176.0 + number % 5)
    lines[23] = pairs_block(22, ["node02"])
    return lines


def soaked(lines: Iterable[SoakLine | None]) -> Soak:
    """What the lines tell."""
    return judged(lines, "soak-folder")


def with_soak(snapshot: Snapshot, lines: Iterable[SoakLine | None]) -> Snapshot:
    """The snapshot with that soak."""
    return replace(snapshot, bench=bench_result(points=(), soak=soaked(lines)))


def soak_report(lines: Iterable[SoakLine | None]) -> Report:
    """A report of four nodes with that soak."""
    saved = Saved(
        "1", "ncclcheck-snapshot", Tool("ncclcheck", "0"), "soak", "2026-01-01T00:00:00+00:00", 1.0, False,
        with_soak(cluster(4), lines),
    )  # fmt: skip
    return replay(saved, RunOptions("soak")).report
