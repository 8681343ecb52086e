"""NC824: slow rails."""

from __future__ import annotations

from ncclcheck.model.benchmarks.matrix import SwappedRail
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.matrix_builders import with_matrix, with_rails

SLUG = "rail-slow"


def test_equal_rails_are_silent_and_one_rail_does_not_apply() -> None:
    assert is_silent(SLUG, with_rails())
    assert run(SLUG, with_matrix()).outcome == "not_applicable"
    assert run(SLUG, cluster(4)).outcome == "not_applicable"
    assert run(SLUG, with_rails(slow=(), swapped=())).outcome == "passed"


def test_a_slow_rail_is_named_with_its_gpu_and_host() -> None:
    found = finding(SLUG, with_rails(slow=("node02",)))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "GPU 1 of node02 is slow on its rail" in found.summary


def test_a_swapped_rail_is_left_to_the_check_of_swapped_ones() -> None:
    assert is_silent(SLUG, with_rails(slow=("node02",), swapped=(SwappedRail("node02", 1, 0),)))


def test_rails_that_are_built_for_themselves_are_told() -> None:
    assert "reach 4 Gbit/s" in finding(SLUG, with_rails(cross_gbit_s=4.0)).summary
    found = finding(SLUG, with_rails(cross_gbit_s=0.0))
    assert found.severity == "info"
    assert "do not reach each other" in found.summary
