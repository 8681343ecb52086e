"""NC802 bench-wrong-data."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench import WrongElement
from ncclcheck.model.fact import Missing
from tests.bench_builders import bench_point, with_bench
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run

LATE = (1.0, 2.0, 3.0, 4.0)


def test_right_numbers_are_silent() -> None:
    assert is_silent("bench-wrong-data", with_bench(cluster(4)))


def test_wrong_elements_are_an_error_with_size_and_count() -> None:
    found = finding("bench-wrong-data", with_bench(cluster(4), bench_point(1 << 20, LATE, wrong=7)))
    assert found.severity == "error"
    assert "all_reduce of 1048576 bytes gave 7 wrong elements" in found.summary


def test_the_rank_that_saw_the_first_one_is_named() -> None:
    first = WrongElement(2, 3, 17, "nan", "4.0")
    point = replace(bench_point(1 << 20, LATE, wrong=7), first_wrong=first)
    found = finding("bench-wrong-data", with_bench(cluster(4), point))
    assert found.hosts == ("node03",)
    assert "rank 2 on node03, iteration 3, element 17: nan instead of 4.0" in found.summary


def test_where_every_rank_has_them_no_single_one_is_blamed() -> None:
    first = WrongElement(0, 2, 77, "8746", "8745")
    point = replace(bench_point(1 << 20, LATE, wrong=4), first_wrong=first, wrong_ranks=(0, 1, 2, 3))
    found = finding("bench-wrong-data", with_bench(cluster(4), point))
    assert found.hosts == ("node01", "node02", "node03", "node04")
    assert "which one is not known" in found.summary


def test_what_was_not_verified_is_unknown() -> None:
    assert (
        run("bench-wrong-data", with_bench(cluster(4), bench_point(1 << 20, LATE, wrong=None))).outcome
        == "unknown"
    )
    assert run("bench-wrong-data", with_bench(cluster(4), points=())).outcome == "unknown"
    assert run("bench-wrong-data", replace(cluster(4), bench=Missing("error"))).outcome == "unknown"


def test_without_a_benchmark_the_question_does_not_arise() -> None:
    assert run("bench-wrong-data", cluster(4)).outcome == "not_applicable"
