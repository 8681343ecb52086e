"""leaf-uplink-slow of matrix."""

from __future__ import annotations

import pytest

from ncclcheck.model.benchmarks.matrix import LeafUplink
from tests.checks.running import finding, run
from tests.matrix_builders import HOSTS, LEAVES, with_matrix

SLUG = "leaf-uplink-slow"
THREE = (HOSTS[:2], HOSTS[2:3], HOSTS[3:])
EQUAL = tuple(LeafUplink(leaf, 5.0, 5.0, None) for leaf in range(3))


def test_equal_uplinks_pass() -> None:
    assert run(SLUG, with_matrix(leaves=THREE, uplinks=EQUAL)).outcome == "passed"


@pytest.mark.parametrize("leaves", [(HOSTS,), LEAVES], ids=["flat", "two leaves"])
def test_of_fewer_than_three_leaves_nobody_can_tell(leaves: tuple[tuple[str, ...], ...]) -> None:
    assert run(SLUG, with_matrix(leaves=leaves)).outcome == "not_applicable"


def test_a_slow_uplink_is_named_with_its_hosts_and_direction() -> None:
    slow = LeafUplink(0, 2.5, 5.0, "send")
    found = finding(SLUG, with_matrix(leaves=THREE, uplinks=(slow, *EQUAL[1:])))
    assert (found.severity, found.hosts) == ("error", HOSTS[:2])
    assert found.summary == (
        "the uplink of leaf01 is slow out of it: its nodes reach 2.5 Gbit/s each across leaves, where 5 Gbit/s is usual"
    )


def test_a_leaf_that_was_not_compared_does_not_pass() -> None:
    compared = run(SLUG, with_matrix(leaves=THREE, uplinks=EQUAL[:2]))
    assert compared.outcome == "unknown"
    assert "leaf03 could not be compared" in compared.reason
    assert run(SLUG, with_matrix(leaves=THREE, uplinks=EQUAL, is_finished=False)).outcome == "unknown"


def test_where_no_test_finished_nothing_is_known() -> None:
    assert run(SLUG, with_matrix(leaves=(), order=(), apart=HOSTS)).outcome == "unknown"
