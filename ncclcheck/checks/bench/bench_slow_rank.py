"""NC803 bench-slow-rank."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.blame import SlowRank, slow_ranks
from ncclcheck.model.bench import BenchResult, Point, RankTime
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

_LISTED = 8  # points spelled out as evidence


@check("NC803", "bench-slow-rank", "No rank keeps the others waiting")
def bench_slow_rank(snapshot: Snapshot) -> Iterator[Answer]:
    """In a typical iteration no rank is late for a good part of it and far more than the others.

    ## Why it matters
    A collective is as slow as its last rank. The others wait inside the call, so their times look bad and the
    late rank's own time looks good: what counts is who came late.

    ## How to fix
    Look at that node: other processes, too few cores for the job (cpuset, `srun -c`), a power or thermal limit,
    swapping.

    ## Source
    Robust statistics over the ranks of this run (ncclcheck/measure/blame.py): more than 20 % of the iteration, and far
    outside the spread (MAD) of the others. A slow link shows in neither of its ends.
    """
    bench = bench_of(snapshot)
    if bench is not None and bench.points:
        if bench.world_size == 1:
            yield NotApplicable("one rank")
        elif not any(len(point.ranks) > 1 for point in bench.points):
            yield NotKnown("no times of single ranks were taken")
        for slow in slow_ranks(bench.points):
            yield _finding(bench, slow)
    yield from not_measured(snapshot, points=True)


def _finding(bench: BenchResult, slow: SlowRank) -> Finding:
    return Finding(
        "warning",
        f"rank {slow.rank} on {slow.host} keeps the others waiting: typically {slow.late_us / 1000:.2f} ms, "
        f"{slow.late_share:.0%} of an iteration, the others {slow.others_share:.0%}",
        (slow.host,),
        tuple(_evidence(point, time) for point, time in _times(bench, slow.rank)[:_LISTED]),
        (
            Fix(
                "look at the load, the cores given to the process, and power or thermal limits of that node",
                ("uptime", "taskset -cp PID", "nvidia-smi -q -d PERFORMANCE"),
            ),
        ),
    )


def _times(bench: BenchResult, rank: int) -> list[tuple[Point, RankTime]]:
    return [(point, time) for point in bench.points for time in point.ranks if time.rank == rank]


def _evidence(point: Point, time: RankTime) -> Evidence:
    return Evidence(
        (time.host,),
        f"lateness of rank {time.rank} in {point.op}, {point.size_bytes} bytes",
        f"{time.late_us:.0f} us of {point.time_us.p50:.0f} us",
        "as little as the others",
        "its own clock, against the longest time in the call",
    )
