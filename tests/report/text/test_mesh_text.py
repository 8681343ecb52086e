"""The table of parallel groups."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.mesh import DimensionPlacement, MeshPlacement
from ncclcheck.report.text.mesh_text import mesh_lines
from ncclcheck.report.text.page import draw_plain
from tests.report.reports import report

PLACED = MeshPlacement(
    "dp=4,tp=8", "--mesh", (DimensionPlacement("dp", 4, 8, 4, 8, 1), DimensionPlacement("tp", 8, 4, 1, 0, 1))
)


def test_a_line_for_each_dimension() -> None:
    text = draw_plain(mesh_lines(replace(report(), mesh=PLACED)))
    assert text.splitlines() == [
        "parallel groups: dp=4,tp=8 (from --mesh)",
        "  dimension  ranks  groups  nodes spanned  least possible",
        "  dp             4       8              4               1",
        "  tp             8       4              1               1",
    ]


def test_without_a_mesh_there_is_none() -> None:
    assert list(mesh_lines(report())) == []
