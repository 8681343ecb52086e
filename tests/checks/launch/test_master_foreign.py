"""NC111 master-foreign."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-foreign", cluster(4))


def test_what_answers_instead_is_told() -> None:
    found = finding(
        "master-foreign", with_master(cluster(4), "node03", "foreign", detail="HTTP/1.1 400 Bad Request")
    )
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "HTTP/1.1 400 Bad Request" in found.summary


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-foreign", with_silent(cluster(4), "node03", "foreign"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "foreign"), "node03")
    assert finding("master-foreign", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-foreign", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-foreign", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-foreign", cluster(1)).outcome == "not_applicable"


def test_a_stranger_that_only_one_node_meets_is_on_its_own_path() -> None:
    broken = with_master(cluster(4), "node03", "foreign", detail="no TCPStore answer within 8 s")
    found = finding("master-foreign", broken)
    assert "where node01" not in found.summary
    assert "where node02 and node04 reached node 0: a proxy takes the connections of node03" in found.summary
    assert not found.fixes[0].env


def test_a_stranger_that_all_meet_holds_the_port() -> None:
    broken = cluster(2)
    found = finding("master-foreign", with_master(broken, "node02", "foreign"))
    assert found.fixes[0].env == {"MASTER_PORT": "29501"}


def test_a_port_that_another_program_holds_on_node_0_is_told_once() -> None:
    held = with_master(cluster(3), "node01", "port-in-use")
    held = with_master(held, "node02", "foreign")
    result = run("master-foreign", held)
    assert (result.outcome, result.findings) == ("unknown", ())
    assert "see master-port-in-use" in result.reason
    assert finding("master-port-in-use", held).hosts == ("node01",)
