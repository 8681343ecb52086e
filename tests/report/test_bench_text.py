"""The table has nccl-tests' columns and units."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench import RankFailure, WrongElement
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.bench_text import bench_lines
from ncclcheck.report.page import draw
from tests.builders import bench_point, cluster, with_bench
from tests.report.reports import report

POINT = bench_point(1 << 20, (3.0, 1.0, 4.0, 2.0))


def shown(snapshot: Snapshot, verbose: int = 0) -> list[str]:
    made = report(snapshot=snapshot, command="bench")
    return draw(bench_lines(made, verbose), width=None, color=False).splitlines()


def test_columns_line_up_under_their_names_and_units() -> None:
    title, header, units, row = shown(with_bench(cluster(4), POINT))
    assert title == "all_reduce, 4 ranks on 4 nodes, gloo over tcp eth0"
    assert header.split() == ["size", "count", "type", "iters", "time", "p95", "algbw", "busbw", "#wrong"]
    assert units.split() == ["(B)", "(elements)", "(us)", "(us)", "(GB/s)", "(GB/s)"]
    assert row.split() == ["1048576", "262144", "float32", "20", "1000", "1000", "1.00", "1.50", "0"]
    assert header.index("#wrong") + len("#wrong") == len(row)


def test_a_transport_that_names_the_backend_is_enough() -> None:
    title = shown(with_bench(cluster(4), POINT, transport="gloo over TCP on eth0"))[0]
    assert title == "all_reduce, 4 ranks on 4 nodes, gloo over TCP on eth0"


def test_data_that_was_not_verified_is_not_shown_as_right() -> None:
    lines = shown(with_bench(cluster(4), replace(POINT, wrong=None)))
    assert lines[3].endswith("N/A")
    assert lines[4] == "  #wrong N/A: the data was not verified"


def test_wrong_data_and_instability_are_told_at_their_size() -> None:
    bad = replace(POINT, wrong=7, unstable="the rates drift", first_wrong=WrongElement(3, 2, 17, "nan", "2"))
    lines = shown(with_bench(cluster(4), bad))
    assert "  1M: wrong data: rank 3, iteration 2, element 17: got nan, expected 2" in lines
    assert "  1M: unstable: the rates drift" in lines


def test_p99_is_not_invented_from_few_samples() -> None:
    assert any("p99 too few samples" in line for line in shown(with_bench(cluster(4), POINT), verbose=1))


def test_a_rank_that_hangs_is_named() -> None:
    failure = RankFailure(5, "node02", "stopped", "all_reduce 64M, iteration 3", "state T", 20.0)
    text = " ".join(shown(with_bench(cluster(4), POINT, failures=(failure,))))
    assert "failed  rank 5 on node02 stopped in all_reduce 64M, iteration 3, after 20.0 s: state T" in text


def test_no_benchmark_is_no_section() -> None:
    assert shown(cluster(4)) == []
