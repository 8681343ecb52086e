"""NC806 bench-unstable."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench_demands import BenchDemands
from ncclcheck.model.fact import Missing
from tests.bench_builders import bench_point, with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run

SLUG = "bench-unstable"
POINT = bench_point(1 << 20, (0.0, 0.0))
SHAKY = replace(POINT, unstable="the median of 20 iterations is only known to -9.1% +7.4% (95 % interval)")


def test_points_that_are_known_are_silent() -> None:
    assert is_silent(SLUG, with_bench(cluster(2), POINT))


def test_sets_of_trials_are_judged_together() -> None:
    snapshot = with_bench(cluster(2), SHAKY, trials=(), race=None)
    assert run(SLUG, snapshot).outcome == "not_applicable"


def test_points_that_are_not_are_told_with_the_reason() -> None:
    snapshot = replace(with_bench(cluster(2), POINT, SHAKY), bench_demands=BenchDemands())
    found = finding(SLUG, snapshot)
    assert found.severity == "info"
    assert "1 of 2 points is too noisy to report: all_reduce of 1M" in found.summary
    assert "only known to -9.1% +7.4%" in found.summary
    assert (
        "2 of 2 points are too noisy to report" in finding(SLUG, with_bench(cluster(2), SHAKY, SHAKY)).summary
    )
    assert "1 of 1 point is too noisy to report" in finding(SLUG, with_bench(cluster(2), SHAKY)).summary


def test_it_is_a_warning_where_they_are_judged_or_vary_wildly() -> None:
    assert finding(SLUG, with_bench(cluster(2), SHAKY)).severity == "warning"
    wild = replace(SHAKY, time_us=replace(SHAKY.time_us, p95=10_000.0))
    assert (
        finding(SLUG, replace(with_bench(cluster(2), wild), bench_demands=BenchDemands())).severity
        == "warning"
    )


def test_without_a_benchmark_nothing_is_said() -> None:
    assert run(SLUG, cluster(2)).outcome == "not_applicable"
    assert run(SLUG, replace(cluster(2), bench=Missing("timeout"))).outcome == "unknown"
