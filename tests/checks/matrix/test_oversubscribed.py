"""oversubscribed of matrix."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import Oversubscription
from ncclcheck.report.text.terminal import render
from tests.checks.running import finding, run
from tests.matrix_builders import FOUR_TO_ONE, LEAVES, with_matrix
from tests.session_report import report_of


def test_a_flat_network_passes() -> None:
    assert run("oversubscribed", with_matrix()).outcome == "passed"


def test_the_ratio_and_its_interval_are_told() -> None:
    found = finding("oversubscribed", with_matrix(leaves=LEAVES, oversubscription=FOUR_TO_ONE))
    assert found.severity == "warning"
    assert "4.0:1 (95 % interval 3.90 to 4.10)" in found.summary
    assert [seen.hosts for seen in found.evidence] == list(LEAVES)


def test_a_trunk_that_is_slow_in_one_direction_is_an_error_with_the_direction() -> None:
    one_way = Oversubscription(10.0, 3.75, 2.67, 2.6, 2.7, 3, 1, 9.9)
    snapshot = with_matrix(leaves=LEAVES, oversubscription=one_way)
    found = finding("oversubscribed", snapshot)
    assert found.severity == "error"
    assert "from leaf02 to leaf01 is slow, and only in this direction" in found.summary
    assert "3.75 Gbit/s each, 2.7 times less" in found.summary
    assert "9.9 Gbit/s back" in found.summary
    text = render(report_of("matrix", snapshot))
    assert "10 Gbit/s within, 3.75 Gbit/s from leaf02 to leaf01 (9.9 Gbit/s back): 2.67:1" in text


def test_an_interval_that_holds_no_oversubscription_is_no_finding() -> None:
    unsure = Oversubscription(10.0, 8.0, 1.25, 0.9, 1.6, 5)
    assert run("oversubscribed", with_matrix(oversubscription=unsure)).outcome == "passed"


def test_what_was_not_measured_is_unknown() -> None:
    assert run("oversubscribed", with_matrix(oversubscription=None)).outcome == "unknown"
    assert (
        run("oversubscribed", replace(with_matrix(), matrix=with_matrix().isolation)).outcome
        == "not_applicable"
    )
