"""host-order of matrix."""

from __future__ import annotations

import pytest

from tests.checks.running import finding, run
from tests.matrix_builders import FOUR_TO_ONE, HOSTS, LEAVES, with_matrix

SLUG = "host-order"
MIXED = ((HOSTS[0], HOSTS[2]), (HOSTS[1], HOSTS[3]))  # the job's order goes from leaf to leaf with every hop


@pytest.mark.parametrize("leaves", [(HOSTS,), LEAVES], ids=["flat", "leaf by leaf"])
def test_an_order_that_crosses_no_more_than_it_must_passes(leaves: tuple[tuple[str, ...], ...]) -> None:
    assert run(SLUG, with_matrix(leaves=leaves)).outcome == "passed"


def test_an_order_that_alternates_is_named_with_what_it_costs() -> None:
    found = finding(SLUG, with_matrix(leaves=MIXED, oversubscription=FOUR_TO_ONE))
    assert found.severity == "warning"
    assert "goes 4 times from leaf to leaf, where 2 times are enough" in found.summary
    assert "2.5 Gbit/s instead of 5" in found.summary  # a trunk carries 2 x 2.5, for two flows or for one
    assert found.fixes[0].commands == ("ncclcheck matrix --quiet --print hostfile > hosts",)


def test_an_order_that_the_trunks_carry_is_only_told() -> None:
    found = finding(SLUG, with_matrix(leaves=MIXED))
    assert found.severity == "info"
    assert "the trunks carry that" in found.summary


def test_without_the_load_of_the_trunks_nothing_is_said_of_the_cost() -> None:
    found = finding(SLUG, with_matrix(leaves=MIXED, oversubscription=None))
    assert found.severity == "info"
    assert found.summary.endswith("where 2 times are enough")


def test_an_unfinished_matrix_is_unknown() -> None:
    assert run(SLUG, with_matrix(leaves=MIXED, is_finished=False)).outcome == "unknown"
    assert run(SLUG, with_matrix(leaves=(), order=(), apart=HOSTS)).outcome == "unknown"
