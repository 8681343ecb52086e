"""NC107 master-port-in-use."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-port-in-use", cluster(4))


def test_the_holder_of_the_port_is_told() -> None:
    found = finding(
        "master-port-in-use", with_master(cluster(4), "node01", "port-in-use", detail="held by pid 4242")
    )
    assert (found.severity, found.hosts) == ("error", ("node01",))
    assert "29500 is already in use on node01 (held by pid 4242)" in found.summary
    assert found.fixes[0].env == {"MASTER_PORT": "29501"}


def test_a_privileged_port_is_told_apart() -> None:
    found = finding("master-port-in-use", with_master(cluster(4), "node01", "port-denied", port=80))
    assert "may not listen on MASTER_PORT 80" in found.summary


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-port-in-use", with_silent(cluster(4), "node03", "port-in-use"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "port-in-use"), "node03")
    assert finding("master-port-in-use", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-port-in-use", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-port-in-use", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-port-in-use", cluster(1)).outcome == "not_applicable"
