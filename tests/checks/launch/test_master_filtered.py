"""NC109 master-filtered."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-filtered", cluster(4))


def test_the_node_and_its_source_address_are_named() -> None:
    found = finding("master-filtered", with_master(cluster(4), "node03", "filtered"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "10.0.0.1:29500, connecting from 10.0.0.3 (eth0)" in found.summary
    assert any("29500" in command for command in found.fixes[0].commands)


def test_where_nobody_comes_through_node_0_is_suspected_once() -> None:
    broken = cluster(4)
    for host in ("node02", "node03", "node04"):
        broken = with_master(broken, host, "filtered")
    found = finding("master-filtered", broken)
    assert found.hosts == ("node02", "node03", "node04")
    assert "check node 0 first" in found.summary


def test_a_node_whose_way_ended_earlier_says_nothing_about_it() -> None:
    result = run("master-filtered", with_master(cluster(4), "node03", "unresolvable"))
    assert result.outcome == "unknown"
    assert "at an earlier stage (unresolvable)" in result.reason


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-filtered", with_silent(cluster(4), "node03", "filtered"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "filtered"), "node03")
    assert finding("master-filtered", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-filtered", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-filtered", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-filtered", cluster(1)).outcome == "not_applicable"


def test_node_whose_answers_are_dropped_is_named_instead_of_the_port() -> None:
    broken = with_master(cluster(4), "node03", "filtered", answers_lost=True)
    found = finding("master-filtered", broken)
    assert found.hosts == ("node03",)
    assert "a firewall on node03, or on the path to it, drops the answers" in found.summary
    assert not any("add-port" in command or "ufw allow" in command for command in found.fixes[0].commands)


def test_requests_and_answers_that_are_dropped_are_two_findings() -> None:
    broken = with_master(
        with_master(cluster(4), "node03", "filtered", answers_lost=True), "node04", "filtered"
    )
    assert [found.hosts for found in run("master-filtered", broken).findings] == [("node03",), ("node04",)]


def test_a_nodes_own_firewall_is_named_and_not_that_of_node_0() -> None:
    found = finding("master-filtered", with_master(cluster(4), "node03", "filtered", blocked_here=True))
    assert found.hosts == ("node03",)
    assert "its own firewall does not let packets to there out" in found.summary
    assert "OUTPUT" in found.fixes[0].commands[0]
