"""The heat map of matrix."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import MatrixLeaf
from ncclcheck.report.html.html import to_html
from ncclcheck.report.html.html_matrix import CELL, heat_map
from tests.matrix_builders import fabric, matrix_report, two_leaves


def test_a_cell_for_each_path_in_the_order_of_the_leaves() -> None:
    found = heat_map(two_leaves())
    assert found is not None
    assert found.height == 4 * CELL
    assert len(found.cells) == 12
    assert {cell.fill for cell in found.cells} == {"hsl(130 60% 50%)", "hsl(32 60% 50%)"}
    page = to_html(matrix_report(two_leaves()))
    assert "node01 to node03: 2.5 Gbit/s" in page


def test_without_a_usual_rate_a_cell_has_no_part_of_it() -> None:
    found = heat_map(replace(two_leaves(), reference_gbit_s=0.0))
    assert found is not None
    assert {cell.fill for cell in found.cells} == {"grey"}


def test_too_many_nodes_and_no_matrix_have_no_map() -> None:
    many = (MatrixLeaf("leaf01", tuple(f"n{number}" for number in range(65))),)
    assert heat_map(fabric(leaves=many)) is None
    assert heat_map(None) is None


def test_hostile_names_stay_text() -> None:
    hostile = replace(fabric(), leaves=(MatrixLeaf("leaf01", ("<script>", "node02")),), cells=())
    assert "<script></text>" not in to_html(matrix_report(hostile))
