"""cell-slow of matrix."""

from __future__ import annotations

from msgspec.structs import replace

from tests.checks.running import finding, run
from tests.matrix_builders import SLOW_PATH, with_matrix


def test_no_slow_path_passes_and_an_unfinished_matrix_does_not() -> None:
    assert run("cell-slow", with_matrix()).outcome == "passed"
    assert run("cell-slow", with_matrix(is_finished=False)).outcome == "unknown"


def test_the_path_is_named_with_its_direction() -> None:
    found = finding("cell-slow", with_matrix(paths=(SLOW_PATH,)))
    assert found.summary.startswith(
        "the path from node01 to node02 is slow in each of 3 tests: 50% of what is usual"
    )
    blocked = finding("cell-slow", with_matrix(paths=(replace(SLOW_PATH, part=None),)))
    assert "nothing comes through" in blocked.summary
