"""The heat map of matrix."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.report.html.html import to_html
from ncclcheck.report.html.html_matrix import CELL, heat_map, point_map
from ncclcheck.report.matrix.matrix_text import leaf_order
from tests.matrix_builders import fabric, many_hosts, matrix_report, two_leaves
from tests.report.html.png_reader import rows_of


def test_a_cell_for_each_path_in_the_order_of_the_leaves() -> None:
    found = heat_map(two_leaves())
    assert found is not None
    assert found.height == 4 * CELL
    assert len(found.cells) == 12
    assert {cell.fill for cell in found.cells} == {"hsl(130 60% 50%)", "hsl(32 60% 50%)"}
    page = to_html(matrix_report(two_leaves()))
    assert "node01 to node03: 2.5 Gbit/s" in page


@pytest.mark.parametrize("others", [(), tuple(f"n{number}" for number in range(65))])
def test_a_host_that_only_a_cell_names_has_a_row_too(others: tuple[str, ...]) -> None:
    known = two_leaves()
    cells = (*known.cells, replace(known.cells[3], to_host="zzz"))
    found = replace(known, cells=cells, order=(*known.order, *others))
    assert leaf_order(found)[-1] == "zzz"
    page = to_html(matrix_report(found))
    assert ("node02 to zzz" in page) is not bool(others), "more than 64 nodes have points"


def test_without_a_usual_rate_a_cell_has_no_part_of_it() -> None:
    found = heat_map(replace(two_leaves(), reference_gbit_s=0.0))
    assert found is not None
    assert {cell.fill for cell in found.cells} == {"grey"}


def test_many_nodes_of_a_flat_network_and_no_matrix_have_no_map_of_leaves() -> None:
    many = (tuple(f"n{number}" for number in range(65)),)
    assert heat_map(fabric(leaves=many, cells=())) is None
    assert heat_map(None) is None
    assert point_map(None) is None
    assert point_map(fabric()) is None


def test_many_nodes_have_a_cell_for_each_pair_of_leaves_and_a_point_for_each_path() -> None:
    found = many_hosts(96, 32, 40)
    leaves = heat_map(found)
    assert leaves is not None
    assert [name for _, name in leaves.names] == ["leaf01", "leaf02", "leaf03"]
    assert any(
        "leaf01 to leaf02: 2.5" in cell.title and "the slowest of" in cell.title for cell in leaves.cells
    )
    points = point_map(found)
    assert points is not None
    assert (points.side, points.nodes_per_point) == (96, 1)
    drawn = rows_of(points.address)
    assert (len(drawn), len(drawn[0])) == (96, 96)
    assert drawn[0][0] == 0  # not measured
    assert drawn[0][1] == 22  # the usual rate
    assert drawn[0][36] == 7  # a quarter of it
    page = to_html(matrix_report(found))
    assert points.address in page


def test_a_point_of_several_nodes_is_the_slowest_path_and_black_did_not_finish() -> None:
    found = many_hosts(2048, 32, 3)
    lost = replace(found, cells=(*found.cells[:4], replace(found.cells[0], gbit_s=None)))
    points = point_map(lost)
    assert points is not None
    assert (points.side, points.nodes_per_point) == (1024, 2)
    assert rows_of(points.address)[0][0] == 1


def test_the_page_of_a_thousand_nodes_is_small() -> None:
    page = to_html(matrix_report(many_hosts(1024, 32, 60)))
    assert len(page) < 2 << 20
    assert "and the paths of its matrix" in page
