"""oversubscribed of matrix."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import Oversubscription
from tests.checks.running import finding, run
from tests.matrix_builders import FOUR_TO_ONE, LEAVES, with_matrix


def test_a_flat_network_passes() -> None:
    assert run("oversubscribed", with_matrix()).outcome == "passed"


def test_the_ratio_and_its_interval_are_told() -> None:
    found = finding("oversubscribed", with_matrix(leaves=LEAVES, oversubscription=FOUR_TO_ONE))
    assert found.severity == "warning"
    assert "4.0:1 (95 % interval 3.90 to 4.10)" in found.summary
    assert [seen.hosts for seen in found.evidence] == list(LEAVES)


def test_an_interval_that_holds_no_oversubscription_is_no_finding() -> None:
    unsure = Oversubscription(10.0, 8.0, 1.25, 0.9, 1.6, 5)
    assert run("oversubscribed", with_matrix(oversubscription=unsure)).outcome == "passed"


def test_what_was_not_measured_is_unknown() -> None:
    assert run("oversubscribed", with_matrix(oversubscription=None)).outcome == "unknown"
    assert (
        run("oversubscribed", replace(with_matrix(), matrix=with_matrix().isolation)).outcome
        == "not_applicable"
    )
