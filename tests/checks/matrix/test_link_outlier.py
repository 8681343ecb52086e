"""link-outlier of matrix."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import OpenPath
from tests.checks.running import finding, run
from tests.matrix_builders import HOSTS, HUNG_NODE, SLOW_NODE, SLOW_PATH, fabric, with_matrix


def test_no_slow_path_passes_and_an_unfinished_matrix_does_not() -> None:
    assert run("link-outlier", with_matrix()).outcome == "passed"
    assert run("link-outlier", with_matrix(is_finished=False)).outcome == "unknown"


def test_the_path_is_named_with_its_direction() -> None:
    found = finding("link-outlier", with_matrix(paths=(SLOW_PATH,)))
    assert found.summary.startswith(
        "the path from node01 to node02 is slow in each of 3 tests: 50% of what is usual"
    )
    blocked = finding("link-outlier", with_matrix(paths=(replace(SLOW_PATH, part=None),)))
    assert "nothing comes through" in blocked.summary


def test_pairs_that_were_not_measured_are_told_and_do_not_pass() -> None:
    few = tuple(cell for cell in fabric().cells if {cell.from_host, cell.to_host} != {"node02", "node03"})
    told = run("link-outlier", with_matrix(cells=few))
    assert told.outcome == "unknown"
    assert "5 of 6 pairs were measured" in told.reason
    assert "0 of 6 pairs" in run("link-outlier", with_matrix(cells=())).reason


def test_a_pair_that_did_not_finish_was_not_measured_unless_its_path_is_named() -> None:
    cells = tuple(
        replace(cell, gbit_s=None) if cell.from_host == "node01" and cell.to_host == "node02" else cell
        for cell in fabric().cells
    )
    assert "5 of 6 pairs were measured" in run("link-outlier", with_matrix(cells=cells)).reason
    assert run("link-outlier", with_matrix(cells=cells, paths=(SLOW_PATH,))).outcome == "found"


def test_paths_of_a_lost_node_are_not_missed() -> None:
    left = tuple(cell for cell in fabric().cells if "node04" not in (cell.from_host, cell.to_host))
    leaves = (HOSTS[:3],)
    assert run("link-outlier", with_matrix(cells=left, leaves=leaves, nodes=(HUNG_NODE,))).outcome == "passed"
    alone = with_matrix(cells=(), leaves=(), apart=("node01",), nodes=(HUNG_NODE,))
    assert run("link-outlier", alone).outcome == "unknown"


def test_paths_of_a_node_in_no_leaf_are_not_judged_unless_it_is_named() -> None:
    leaves = ((HOSTS[0], HOSTS[1], HOSTS[3]),)
    told = run("link-outlier", with_matrix(leaves=leaves, apart=("node03",)))
    assert told.outcome == "unknown"
    assert "node03 belongs to no leaf" in told.reason
    named = with_matrix(leaves=leaves, apart=("node03",), nodes=(SLOW_NODE,))
    assert run("link-outlier", named).outcome == "passed"


def test_a_path_that_could_not_be_decided_is_unknown() -> None:
    told = run("link-outlier", with_matrix(open_paths=(OpenPath("node01", "node02", 2, 3),)))
    assert told.outcome == "unknown"
    assert "the path from node01 to node02 was slow in 2 of 3 tests" in told.reason
