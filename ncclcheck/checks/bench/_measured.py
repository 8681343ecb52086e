"""Whether there is a benchmark to judge."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.bench import BenchResult
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot


def bench_of(snapshot: Snapshot) -> BenchResult | None:
    """Return the benchmark of the run, where there is one."""
    return None if isinstance(snapshot.bench, Missing) else snapshot.bench


def not_measured(snapshot: Snapshot, *, points: bool) -> Iterator[NotKnown | NotApplicable]:
    """Why there is nothing to judge: no benchmark was asked for, or it came to nothing.

    `points` says that the question needs measured points.
    """
    bench = snapshot.bench
    if isinstance(bench, Missing):
        absent = bench.missing == "absent"
        yield (
            NotApplicable(bench.detail or "no benchmark was run")
            if absent
            else NotKnown(f"benchmark: {bench}")
        )
    elif bench.unfinished and not bench.failures:
        yield NotKnown(f"the benchmark did not finish: {bench.unfinished}")
    elif not bench.started and not bench.failures:
        yield NotKnown("the benchmark did not start")
    elif points and bench.soak is not None:
        yield NotApplicable("a soak has checks of its own")
    elif points and not bench.points:
        yield NotKnown("the benchmark measured nothing")
