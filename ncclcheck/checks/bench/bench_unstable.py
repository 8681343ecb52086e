"""NC806 bench-unstable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.bench import BenchResult, Point
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_number, format_size

_LISTED = 6
_FEW = 6  # iterations; with fewer nothing can be said of the spread, and whoever asks for so few knows it
_TAIL = 3.0  # times the median: iterations that long are hiccups of something, not spread


@check("NC806", "bench-unstable", "The bandwidths are precise enough to report")
def bench_unstable(snapshot: Snapshot) -> Iterator[Answer]:
    """The median of every result converges to 2 % (95 % interval) within its time budget or iterations.

    ## Why it matters
    A result that another run would not repeat cannot be compared. Times that vary have a cause: other traffic on the
    links, other processes on the cores, clocks that change, a rank that is stopped now and then.

    ## How to fix
    Give it more time (--budget) or iterations, measure without other load, and give the job its cores. If the slow
    iterations come in bursts, find out what else runs at those times.

    ## Source
    Order statistics of the iteration times (ncclcheck/measure/statistics.py): no distribution is assumed.
    """
    bench = bench_of(snapshot)
    if bench is not None and bench.trials is not None:
        yield NotApplicable("of --try: many short sets of processes were measured, which are judged together")
        return
    if bench is not None:
        unstable = [point for point in bench.points if point.unstable]
        if unstable:
            yield _finding(snapshot, bench, unstable)
    yield from not_measured(snapshot, points=True)


def _finding(snapshot: Snapshot, bench: BenchResult, unstable: Sequence[Point]) -> Finding:
    listing = listed((f"{point.op} of {format_size(point.size_bytes)}" for point in unstable), _LISTED)
    first = unstable[0]
    points = "point" if len(bench.points) == 1 else "points"
    are = "is" if len(unstable) == 1 else "are"
    return Finding(
        _severity(snapshot, unstable),
        f"{len(unstable)} of {len(bench.points)} {points} {are} too noisy to report: {listing}; "
        f"{format_size(first.size_bytes)}: {first.unstable}",
        (),
        tuple(_evidence(point) for point in unstable),
        (Fix("give it more time or iterations, and measure without other load on these nodes and links"),),
    )


def _severity(snapshot: Snapshot, unstable: Sequence[Point]) -> Severity:
    """A warning where something is judged by these figures, or a part of the iterations is out of all proportion."""
    judged = bool(snapshot.bench_demands.floors or snapshot.bench_demands.baseline)
    wild = any(point.iters >= _FEW and point.time_us.p95 > _TAIL * point.time_us.p50 for point in unstable)
    return "warning" if judged or wild else "info"


def _evidence(point: Point) -> Evidence:
    times = point.time_us
    return Evidence(
        (),
        f"times of {point.op}, {point.size_bytes} bytes, {point.iters} iterations",
        f"median {format_number(times.p50)} us, from {format_number(times.min)} to {format_number(times.max)} us",
        "a median known to 2 %",
        "its iteration times",
    )
