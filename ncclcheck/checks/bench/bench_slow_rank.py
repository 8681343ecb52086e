"""NC803 bench-slow-rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.bench._gpus import gpu_findings
from ncclcheck.checks.bench._link_errors import link_error_findings
from ncclcheck.checks.bench._rails import rail_findings, rail_ranks
from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.rates import RateUnit, rate_unit
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.blame import SlowCore, SlowRank, slow_cores, slow_links, slow_ranks
from ncclcheck.measure.blame_gpus import slow_gpus
from ncclcheck.measure.links.outliers import Pair, SlowEnd, SlowPair
from ncclcheck.model.bench import BenchResult, Point, RankTime
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

_LISTED = 8  # points spelled out as evidence
_ALONE = "the same work, each rank by itself after the collectives"
_LINKS = "transfers between two ranks at a time, one direction, after the collectives"


@check("NC803", "bench-slow-rank", "No rank delays the others")
def bench_slow_rank(snapshot: Snapshot) -> Iterator[Answer]:
    """No rank is late, stalled or without a core, no GPU is slower than the others, and no node's link.

    Nor does one GPU alone count NVLink errors or PCIe replays while the benchmark runs.

    ## Why it matters
    A collective is as slow as its last rank. The others wait inside the call, so their times look bad and the late
    rank's own time looks good. The check therefore measures which rank arrives late, and each rank and link by
    itself.

    ## How to fix
    For a rank, check that node for other processes, too few cores for the job (cpuset, `srun -c`), a quota, a power
    or thermal limit, swapping, and signals that stop the process. For a GPU, see why its clock is lower, or compare its
    memory errors and its PCIe link with those of another one (`nvidia-smi -q`). For a link, compare its speed, errors
    and queues with those of another node (`ethtool`, `ip -s link`, `tc -s qdisc`).

    ## Source
    Robust statistics over the ranks of this run (ncclcheck/measure/blame.py), always far outside the spread (MAD) of
    the others. Late: more than 20 % of the iteration. Standing still: 5 %, on GPUs only of a rank that lacks a core.
    A slow core: 1.5 times the others' time for the same work, each rank by itself. Lacking a core: 1.5 times what the
    others take by the clock for each time of the core. A GPU (ncclcheck/measure/blame_gpus.py): all do the same work
    at the same time after the collectives, and among those of one model its clock is 7 % lower, its multiplication or
    copy within memory 20 % slower, or its copy from the host 40 % slower. A link: 30 % below the usual speed for all
    partners of a node, or half of it for a pair; the transfers are made after the collectives, one direction at a
    time, and again where one seems slow. Where nodes have several GPUs, each GPU's rail is judged so
    (ncclcheck/measure/links/rails.py), all rails at the same time. Errors: NVML's counters before and after, 10 or
    more, and ten times the median of the other GPUs (ours).
    """
    bench = bench_of(snapshot)
    if bench is not None and bench.points:
        if bench.world_size == 1:
            yield NotApplicable("one rank")
        elif not any(len(point.ranks) > 1 for point in bench.points):
            yield NotKnown("the times of single ranks were not measured")
        yield from _ranks(bench)
        if bench.failures:
            yield NotKnown("a rank failed, which disturbs the times of the others")
    yield from not_measured(snapshot, points=True)


def _ranks(bench: BenchResult) -> Iterator[Finding]:
    cores = slow_cores(bench.isolation.cores)
    # Who waits for a rank that hangs or is gone looks late or stalled: bench-hang names that one.
    late = () if bench.failures else slow_ranks(bench.points, bench.isolation.cores)
    gpus = slow_gpus(bench.isolation.gpus, bench.points)
    yield from gpu_findings(gpus)
    by_pcie = {gpu.rank for gpu in gpus if gpu.part == "slow PCIe"}
    yield from rail_findings(bench.isolation, by_pcie)
    named = {gpu.rank for gpu in gpus} | rail_ranks(bench.isolation, by_pcie)
    yield from link_error_findings(bench.isolation.gpus, named)
    for rank in dict.fromkeys((*(slow_rank.rank for slow_rank in late), *(core.rank for core in cores))):
        yield _rank(
            bench,
            [slow_rank for slow_rank in late if slow_rank.rank == rank],
            [core for core in cores if core.rank == rank],
        )
    # What is slow where a rank lacks time is not its link.
    explained = {*(slow_rank.host for slow_rank in late), *(core.host for core in cores)}
    ends, pairs = slow_links(bench.isolation.links)
    for host in dict.fromkeys(end.host for end in ends if end.host not in explained):
        yield _end(bench, [end for end in ends if end.host == host])
    for pair in pairs:
        if not explained.intersection(pair.pair):
            yield _pair(bench, pair)


def _rank(bench: BenchResult, late: Sequence[SlowRank], cores: Sequence[SlowCore]) -> Finding:
    first = late[0] if late else cores[0]
    does = [_lateness(rank) for rank in late] + [_core(core) for core in cores]
    evidence = [_evidence(point, time) for point, time in _times(bench, first.rank)[:_LISTED]] if late else []
    evidence += [
        Evidence(
            (core.host,),
            f"time of rank {core.rank} for a fixed piece of work",
            f"{core.work_us / 1000:.1f} ms" + ("" if core.shared else ", of its core alone"),
            f"{core.others_us / 1000:.1f} ms (median of the others)",
            _ALONE,
        )
        for core in cores
    ]
    return Finding(
        "warning",
        f"rank {first.rank} on {first.host} delays the others: {'; '.join(does)}",
        (first.host,),
        tuple(evidence),
        (
            Fix(
                "check the load, the cores of the process, and power or thermal limits of that node",
                ("uptime", "taskset -cp PID", "nvidia-smi -q -d PERFORMANCE"),
            ),
        ),
    )


_HOW = {
    "late": "",
    "stalled": "its process stalls (stopped or throttled), ",
    "crowded": "its threads wait for a core that other processes use, ",
}


def _lateness(slow: SlowRank) -> str:
    times = f"typically {slow.late_us / 1000:.2f} ms, {slow.late_share:.0%} of an iteration"
    return f"{_HOW[slow.how]}{times}, the others {slow.others_share:.0%}"


def _core(slow: SlowCore) -> str:
    times = f"{slow.work_us / slow.others_us:.1f} times as long as the others for the same work by itself"
    had = f"it had its core for {slow.core_share:.0%} of the time"
    why = f"{had}, other processes use it or a quota limits it" if slow.shared else "its core is slower"
    return f"it takes {times}: {why}"


def _end(bench: BenchResult, ends: Sequence[SlowEnd]) -> Finding:
    host, usual = ends[0].host, ends[0].usual
    pairs = dict.fromkeys(pair for end in ends for pair in end.pairs)
    unit = _unit(usual, *(end.median for end in ends), *(_fastest(bench, pair) for pair in pairs))
    does = " and ".join(
        f"{'sends' if slow_end.end == 'sender' else 'receives'} with {unit(8 * slow_end.median)}"
        for slow_end in sorted(ends, key=lambda end: end.end, reverse=True)
    )
    direction = "in both directions" if len(ends) > 1 else "in this direction only"
    return Finding(
        "warning",
        f"{_named_ranks(bench, host)} delays the others: its link is slow, {direction}. {host} {does}, while "
        f"{unit(8 * usual)} is usual between the nodes; all its transfers are slow, and its "
        "partners are fast with other nodes",
        (host,),
        tuple(_link_evidence(bench, pair, usual, unit) for pair in list(pairs)[:_LISTED]),
        (
            Fix(
                f"compare the link, its errors and its queues on {host} with those of another node",
                ("ethtool IFACE", "ip -s link show IFACE", "tc -s qdisc show dev IFACE"),
            ),
        ),
    )


def _pair(bench: BenchResult, slow: SlowPair) -> Finding:
    source, target = slow.pair
    unit = _unit(slow.value, slow.usual, _fastest(bench, slow.pair))
    three = len({link.from_host for link in bench.isolation.links}) > len(slow.pair)
    known = (
        "both are fast with other nodes, so the path between them is slow in this direction"
        if three
        else "the other direction: the sending side, the receiving side, or the path between them"
    )
    return Finding(
        "warning",
        f"the link from {source} to {target} delays the ranks: {unit(8 * slow.value)}, while "
        f"{unit(8 * slow.usual)} is {'usual, and ' if three else 'what comes in '}{known}",
        slow.pair,
        (_link_evidence(bench, slow.pair, slow.usual, unit),),
        (
            Fix(
                "check the cables, switches and queues between the two nodes, and rate limits on either",
                ("ethtool IFACE", "tc -s qdisc show dev IFACE"),
            ),
        ),
    )


def _link_evidence(bench: BenchResult, pair: Pair, usual: float, unit: RateUnit) -> Evidence:
    had, expected = (unit(8 * gb_s) for gb_s in (_fastest(bench, pair), usual))
    return Evidence(pair, f"transfers from {pair[0]} to {pair[1]}", had, expected, _LINKS)


def _fastest(bench: BenchResult, pair: Pair) -> float:
    """GB/s of the pair's best transfer; 0 where there was none."""
    links = bench.isolation.links
    return max((link.gb_s for link in links if (link.from_host, link.to_host) == pair), default=0.0)


def _unit(*gb_s: float) -> RateUnit:
    return rate_unit(8 * rate for rate in gb_s)


def _named_ranks(bench: BenchResult, host: str) -> str:
    ranks = sorted({time.rank for point in bench.points for time in point.ranks if time.host == host})
    if len(ranks) == 1:
        return f"rank {ranks[0]} on {host}"
    return f"{host} (ranks {ranks[0]} to {ranks[-1]})" if ranks else host


def _times(bench: BenchResult, rank: int) -> list[tuple[Point, RankTime]]:
    return [(point, time) for point in bench.points for time in point.ranks if time.rank == rank]


def _evidence(point: Point, time: RankTime) -> Evidence:
    waited = f", {time.waited_us:.0f} us waiting for a core" if time.waited_us else ""
    return Evidence(
        (time.host,),
        f"lateness of rank {time.rank} in {point.op}, {point.size_bytes} bytes",
        f"{time.late_us:.0f} us of {point.time_us.mean:.0f} us ({time.stalled_us:.0f} us stalled{waited})",
        "as little as the others",
        "its own clock, against the longest time in the call",
    )
