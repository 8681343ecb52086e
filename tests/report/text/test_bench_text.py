"""The table has nccl-tests' columns and units."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench import Op, RankFailure, WrongElement
from ncclcheck.model.benchmarks.ceiling import Ceiling, Comparable, Reference
from ncclcheck.model.report import Used
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.bench_text import bench_lines
from ncclcheck.report.text.page import draw
from tests.bench_builders import bench_point, with_bench
from tests.builders import cluster
from tests.report.reports import report

POINT = bench_point(1 << 20, (3.0, 1.0, 4.0, 2.0))


def shown(snapshot: Snapshot, verbose: int = 0) -> list[str]:
    made = report(snapshot=snapshot, command="bench")
    return draw(bench_lines(made, verbose), width=None, color=False).splitlines()


def test_columns_line_up_under_nccl_tests_names_and_units() -> None:
    point = replace(POINT, busbw_low_gb_s=1.456, busbw_high_gb_s=1.544)
    title, header, units, row = shown(with_bench(cluster(4), point))[:4]
    assert title == "all_reduce, 4 ranks on 4 nodes, gloo over tcp eth0"
    names = ["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "iters", "p95"]
    names += ["repeat"]  # where a second run should find the bus bandwidth
    assert header.split() == names
    assert units.split() == ["(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)", "(us)", "(GB/s)"]
    assert row.split() == [
        "1048576",
        "262144",
        "float",
        "sum",
        "-1",
        "1000",
        "1.00",
        "1.50",
        "0",
        "20",
        "1000",
        "1.46-1.54",
    ]
    assert header.index("repeat") + len("repeat") == len(row)
    assert shown(with_bench(cluster(4), POINT))[3].split()[-1] == "N/A"  # too few iterations to tell


def test_reduction_and_root_are_those_of_the_collective() -> None:
    expected: dict[Op, list[str]] = {
        "all_gather": ["none", "-1"],
        "broadcast": ["none", "0"],
        "reduce": ["sum", "0"],
        "reduce_scatter": ["sum", "-1"],
        "send_recv": ["none", "-1"],
    }
    for op, columns in expected.items():
        row = shown(with_bench(cluster(4), replace(POINT, op=op, dtype="bfloat16")))[3].split()
        assert row[2:5] == ["bfloat16", *columns]


def test_the_term_that_binds_and_the_transport_are_told() -> None:
    ceiling = Ceiling(
        "all_reduce", 0.125, 0.125, "1.0 Gbit/s on eth0", "link-speed", 0.952, label="two nodes: a tree"
    )
    used = (
        Used("network", "IB"),
        Used("settings", "NCCL_X=1"),
        Used("channels", "8", ("node01",), differs=True),
    )
    made = report(snapshot=with_bench(cluster(4), POINT), command="bench")
    assert made.bench is not None
    bench = replace(made.bench, ceilings=(ceiling,), used=used, remarks=("judged by the floors",))
    lines = draw(bench_lines(replace(made, bench=bench), 0), width=None, color=False).splitlines()
    assert "  bottleneck 1.0 Gbit/s on eth0: 95% of it reached (0.125 GB/s)" in lines
    assert "  two nodes: a tree" in lines
    assert "used, by NCCL's log: network IB; channels 8 (node01)" in lines
    assert lines[-1] == "judged by the floors"


def test_a_reference_is_told_with_grade_source_and_date() -> None:
    row = Reference(
        "H100", 8, 2, "rdma", "all_reduce", 1 << 30, 440.0, "A", "a/log", "2024-07-19", note="AWS p5"
    )
    made = report(snapshot=with_bench(cluster(4), POINT), command="bench")
    assert made.bench is not None
    bench = replace(made.bench, references=(Comparable(row, 1 << 30, 396.0),))
    text = draw(bench_lines(replace(made, bench=bench), 0), width=None, color=False)
    assert (
        "reference: all_reduce of 1G on 2 x 8 H100: 440.0 GB/s, here 396.0 (90%); grade A, a/log, 2024-07-19; AWS p5"
    ) in text


def test_a_transport_that_names_the_backend_is_enough() -> None:
    title = shown(with_bench(cluster(4), POINT, transport="gloo over TCP on eth0"))[0]
    assert title == "all_reduce, 4 ranks on 4 nodes, gloo over TCP on eth0"


def test_data_that_was_not_verified_is_not_shown_as_right() -> None:
    lines = shown(with_bench(cluster(4), replace(POINT, wrong=None)))
    assert lines[3].split()[8] == "N/A"
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
