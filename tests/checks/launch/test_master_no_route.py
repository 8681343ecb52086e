"""NC110 master-no-route."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-no-route", cluster(4))


def test_the_node_and_the_word_of_the_kernel_are_told() -> None:
    found = finding(
        "master-no-route", with_master(cluster(4), "node03", "no-route", detail="Network is unreachable")
    )
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "has no route to 10.0.0.1:29500" in found.summary
    assert "Network is unreachable" in found.evidence[0].observed


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-no-route", with_silent(cluster(4), "node03", "no-route"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "no-route"), "node03")
    assert finding("master-no-route", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-no-route", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-no-route", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-no-route", cluster(1)).outcome == "not_applicable"
