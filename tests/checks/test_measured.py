"""Whether there is a benchmark to judge."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from tests.bench_builders import with_bench
from tests.builders import cluster


def test_a_benchmark_that_was_not_asked_for_is_no_gap() -> None:
    assert bench_of(cluster(2)) is None
    assert list(not_measured(cluster(2), points=True)) == [NotApplicable("no benchmark was run")]


def test_a_benchmark_that_came_to_nothing_is_one() -> None:
    lost = replace(cluster(2), bench=Missing("timeout", "no time left"))
    assert list(not_measured(lost, points=False)) == [NotKnown("benchmark: timeout: no time left")]
    empty = with_bench(cluster(2), points=())
    assert list(not_measured(empty, points=False)) == []
    assert list(not_measured(empty, points=True)) == [NotKnown("the benchmark measured nothing")]
