"""rail-swapped of matrix."""

from __future__ import annotations

from ncclcheck.model.benchmarks.matrix import SwappedRail
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.matrix_builders import with_matrix, with_rails

SLUG = "rail-swapped"


def test_equal_rails_pass_and_one_rail_does_not_apply() -> None:
    assert run(SLUG, with_rails()).outcome == "passed"
    assert run(SLUG, with_matrix()).outcome == "not_applicable"
    assert run(SLUG, cluster(4)).outcome == "not_applicable"


def test_a_swapped_rail_is_named_with_its_gpu_its_host_and_the_rail() -> None:
    found = finding(SLUG, with_rails(swapped=(SwappedRail("node02", 1, 0),)))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "GPU 1 of node02 is on rail 0" in found.summary
