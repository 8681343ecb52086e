"""row-slow of matrix."""

from __future__ import annotations

from tests.checks.running import finding, run
from tests.matrix_builders import HUNG_NODE, SLOW_NODE, with_matrix


def test_no_slow_node_passes() -> None:
    assert run("row-slow", with_matrix()).outcome == "passed"


def test_the_node_is_named_with_its_direction_or_what_became_of_it() -> None:
    found = finding("row-slow", with_matrix(nodes=(SLOW_NODE,)))
    assert found.summary == "node03 sends slowly, with all other nodes"
    assert found.hosts == ("node03",)
    hung = finding("row-slow", with_matrix(nodes=(HUNG_NODE,)))
    assert hung.summary == "node04 hangs in tests with other nodes: no answer"
