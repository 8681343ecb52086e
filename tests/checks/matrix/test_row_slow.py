"""row-slow of matrix."""

from __future__ import annotations

from tests.checks.running import finding, run
from tests.matrix_builders import HOSTS, HUNG_NODE, SLOW_NODE, fabric, with_matrix


def test_no_slow_node_passes() -> None:
    assert run("row-slow", with_matrix()).outcome == "passed"


def test_the_node_is_named_with_its_direction_or_what_became_of_it() -> None:
    found = finding("row-slow", with_matrix(nodes=(SLOW_NODE,)))
    assert found.summary == "node03 sends slowly, with all other nodes"
    assert found.hosts == ("node03",)
    hung = finding("row-slow", with_matrix(nodes=(HUNG_NODE,)))
    assert hung.summary == "node04 hangs in tests with other nodes: no answer"


def test_a_node_in_no_leaf_that_is_not_named_does_not_pass() -> None:
    leaves = ((HOSTS[0], HOSTS[1], HOSTS[3]),)
    told = run("row-slow", with_matrix(leaves=leaves, apart=("node03",)))
    assert told.outcome == "unknown"
    assert "node03 belongs to no leaf" in told.reason


def test_a_node_without_a_test_that_finished_does_not_pass() -> None:
    left = tuple(cell for cell in fabric().cells if "node04" not in (cell.from_host, cell.to_host))
    told = run("row-slow", with_matrix(cells=left))
    assert told.outcome == "unknown"
    assert "node04 finished no test" in told.reason
    assert run("row-slow", with_matrix(cells=left, nodes=(HUNG_NODE,))).outcome == "found"
