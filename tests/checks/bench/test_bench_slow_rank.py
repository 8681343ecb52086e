"""NC803 bench-slow-rank."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from tests.builders import bench_point, cluster, with_bench
from tests.checks.running import finding, is_silent, run


def test_ranks_that_come_together_are_silent() -> None:
    assert is_silent("bench-slow-rank", with_bench(cluster(4)))


def test_the_rank_that_keeps_the_others_waiting_is_named() -> None:
    points = tuple(bench_point(1 << size, (9.0, 4.0, 600.0, 7.0)) for size in (20, 21, 22))
    found = finding("bench-slow-rank", with_bench(cluster(4), *points))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert (
        "rank 2 on node03 keeps the others waiting: typically 0.60 ms, 60% of an iteration" in found.summary
    )
    assert len(found.evidence) == 3


def test_without_times_of_ranks_nothing_is_known() -> None:
    bare = replace(bench_point(1 << 20, (1.0, 2.0)), ranks=())
    assert run("bench-slow-rank", with_bench(cluster(2), bare, world_size=2)).outcome == "unknown"
    assert run("bench-slow-rank", with_bench(cluster(4), points=())).outcome == "unknown"
    assert run("bench-slow-rank", replace(cluster(4), bench=Missing("error"))).outcome == "unknown"


def test_without_a_benchmark_or_with_one_rank_the_question_does_not_arise() -> None:
    assert run("bench-slow-rank", cluster(4)).outcome == "not_applicable"
    assert (
        run("bench-slow-rank", with_bench(cluster(1), bench_point(1 << 20, (0.0,)))).outcome
        == "not_applicable"
    )
