"""The leaves, the ratio and the map of matrix."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import OpenPath
from ncclcheck.report.matrix.matrix_text import leaf_order
from ncclcheck.report.text.terminal import render
from tests.matrix_builders import HUNG_NODE, SLOW_PATH, fabric, matrix_report, two_leaves


def test_leaves_ratio_and_map_in_their_order() -> None:
    text = render(matrix_report(two_leaves()))
    assert "leaf01: node[01-02]" in text
    assert "4.00:1 (95 % interval 3.90 to 4.10, 5 repeats)" in text
    assert "  node01  #22\n  node02 # 22\n  node03 22 #\n  node04 22# \n".replace(
        " \n", "\n"
    ) in text.replace(" \n", "\n")


def test_flat_is_said_and_slow_paths_and_unfinished_cells_are_shown() -> None:
    found = fabric(paths=(SLOW_PATH,), nodes=(HUNG_NODE,))
    cells = (replace(found.cells[0], gbit_s=None), *found.cells[2:])
    text = render(matrix_report(replace(found, cells=cells)))
    assert "flat: these tests show no leaves that a job could feel" in text
    assert "slow path: node01 to node02, 50% of usual" in text
    assert "node01  x.#" in text
    assert leaf_order(found) == ["node01", "node02", "node03", "node04"]


def test_paths_that_stayed_open_are_told_the_first_eight_one_by_one() -> None:
    text = render(matrix_report(fabric(open_paths=(OpenPath("node01", "node02", 2, 3),) * 10)))
    assert text.count("not decided: node01 to node02, slow in 2 of 3 tests") == 8
    assert "not decided: 2 further paths" in text


def test_without_a_usual_rate_no_part_and_no_flat_network_is_told() -> None:
    found = replace(
        two_leaves(), reference_gbit_s=0.0, leaves=(), apart=("node01", "node02"), nodes=(HUNG_NODE,)
    )
    text = render(matrix_report(found))
    assert "flat" not in text
    assert "no pair of nodes that answer finished a test" in text
    assert "node01  .." in text


def test_of_fewer_than_four_nodes_no_leaves_are_told() -> None:
    few = fabric(leaves=(("node01", "node02"),), flat=False, oversubscription=None)
    text = render(matrix_report(few))
    assert "it takes four nodes that answer" in text
    assert "flat" not in text
    assert "leaf01" not in text
    cut = fabric(flat=False, is_finished=False)
    assert "leaves: not known, the matrix was not finished" in render(matrix_report(cut))
