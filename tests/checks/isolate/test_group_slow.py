"""group-slow of isolate."""

from __future__ import annotations

from ncclcheck.model.benchmarks.isolation import BadGroup
from tests.builders import cluster
from tests.checks.running import finding, run
from tests.isolation_builders import with_isolation

GROUP = ("node01", "node02", "node03")


def test_without_a_group_it_passes() -> None:
    assert run("group-slow", with_isolation()).outcome == "passed"


def test_the_group_is_named_and_its_path_is_blamed() -> None:
    found = finding("group-slow", with_isolation(groups=(BadGroup(GROUP, "slow_uplink"),)))
    assert (found.severity, found.hosts) == ("error", GROUP)
    assert "the path that they share is the cause, no node of them" in found.summary


def test_without_tests_of_pairs_the_question_does_not_arise() -> None:
    assert run("group-slow", cluster(4)).outcome == "not_applicable"
