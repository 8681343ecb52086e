"""Whether there is a benchmark, or another measurement, to judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ncclcheck.measure.soak.soak_limits import LEAST_BLOCKS
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.benchmarks.soak import Soak
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

Result = TypeVar("Result")


def measured(result: Fact[Result]) -> Result | None:
    """Return the result of a measurement, where there is one."""
    return None if isinstance(result, Missing) else result


def why_missing(result: Missing, what: str) -> NotKnown | NotApplicable:
    """Return why there is nothing to judge: `what` was not asked for, or failed."""
    why = f"{what}: {result}"
    return NotApplicable(result.detail or why) if result.missing == "absent" else NotKnown(why)


def bench_of(snapshot: Snapshot) -> BenchResult | None:
    """Return the benchmark of the run, where there is one."""
    return measured(snapshot.bench)


def not_measured(snapshot: Snapshot, *, points: bool) -> Iterator[NotKnown | NotApplicable]:
    """Why there is nothing to judge: no benchmark was asked for, or it failed.

    `points` says that the question needs measured points.
    """
    bench = snapshot.bench
    if isinstance(bench, Missing):
        yield why_missing(bench, "benchmark")
    elif bench.unfinished and not bench.failures:
        yield NotKnown(f"the benchmark did not finish: {bench.unfinished}")
    elif not bench.started and not bench.failures:
        yield NotKnown("the benchmark did not start")
    elif points and bench.soak is not None:
        yield NotApplicable("a soak has its own checks")
    elif points and not bench.points:
        yield NotKnown("the benchmark measured nothing")


def soak_of(snapshot: Snapshot) -> Soak | None:
    """Return the series of the run, where it was a soak."""
    bench = bench_of(snapshot)
    return None if bench is None else bench.soak


def soak_not_measured(snapshot: Snapshot) -> Iterator[NotKnown | NotApplicable]:
    """Yield why there is nothing to judge."""
    soak = soak_of(snapshot)
    if soak is None:  # where one was wanted, the verdict says why there is none
        yield NotApplicable("no soak was run")
    elif soak.blocks < LEAST_BLOCKS:
        yield NotKnown(f"{soak.blocks} blocks are too few to tell: {LEAST_BLOCKS} at least")
