"""The tables of the parallel groups."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.mesh_bench import MeshPoint, StepTime
from ncclcheck.report.bench_report import bench_report
from ncclcheck.report.html.html import to_html
from ncclcheck.report.junit import to_junit
from ncclcheck.report.markdown.markdown import to_markdown
from ncclcheck.report.text.groups_text import group_lines
from ncclcheck.report.text.page import draw_plain
from tests.builders import cluster
from tests.mesh_builders import mesh_point, mesh_result
from tests.report.reports import report


def text(*points: MeshPoint) -> str:
    bench = mesh_result(*points)
    snapshot = replace(cluster(4), bench=bench)
    return draw_plain(group_lines(replace(report(), bench=bench_report(snapshot, bench))))


def test_a_row_has_the_slowest_group_and_its_contention() -> None:
    row = next(row for row in text(mesh_point(1000, 1500)).splitlines() if row.lstrip().startswith("dp"))
    assert row.split()[:12] == [
        "dp", "all_reduce", "1048576", "2", "x", "2", "1500", "1000", "1000", "0.699", "1000", "1.50",
    ]  # fmt: skip
    assert row.endswith("group 1: ranks 2,3 on node[03-04]")


def test_slow_groups_the_mix_and_the_step_are_told() -> None:
    shown = text(mesh_point(1000, 2000, per_step=10, what="gradients of a layer"))
    assert "takes 2000 us, where 1000 us is usual" in shown
    assert "one after the other 3000 us (dp 100%), all at once 2000 us: 1.50 times as fast" in shown
    assert "step: its communication takes 0.500 s (0.400 to 0.600 s)" in shown
    assert "0.020 s: 10 x all_reduce of 1M in dp (gradients of a layer)" in shown


def test_what_was_not_measured_has_its_reason() -> None:
    assert "all_reduce in dp: not measured: gloo cannot" in text(
        mesh_point(1000, groups=(), unsupported="gloo cannot")
    )


def test_without_groups_there_is_nothing() -> None:
    assert draw_plain(group_lines(replace(report(), bench=None))) == ""


def test_every_document_has_the_tables() -> None:
    bench = mesh_result(mesh_point(1000, 2000))
    whole = replace(report(), bench=bench_report(replace(cluster(4), bench=bench), bench))
    for document in (to_markdown(whole), to_html(whole), to_junit(whole)):
        assert "takes 2000 us, where 1000 us is usual" in document


def test_the_wrong_elements_are_those_of_all_groups() -> None:
    row = next(row for row in text(mesh_point(1000, wrong=7)).splitlines() if row.lstrip().startswith("dp"))
    assert row.split()[12] == "7"


def test_a_step_without_all_its_dimensions_says_which_are_missing() -> None:
    result = mesh_result(mesh_point(1000), step=StepTime(0.5, 0.4, 0.6, ("pp", "head")))
    snapshot = replace(cluster(4), bench=result)
    shown = draw_plain(group_lines(replace(report(), bench=bench_report(snapshot, result))))
    assert (
        "step: of its communication, without that in pp and head, which was not measured, 0.500 s"
        in " ".join(shown.split())
    )
