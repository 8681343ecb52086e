"""NC108 master-refused."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-refused", cluster(4))


def test_nobody_listens_there() -> None:
    found = finding("master-refused", with_master(cluster(4), "node03", "refused"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "no program listens there" in found.summary
    assert "node02 and node04 connected" in found.summary


def test_a_node_0_that_serves_leaves_a_firewall() -> None:
    found = finding("master-refused", with_master(cluster(4), "node03", "refused", serving_confirmed=True))
    assert "although node 0 serves there: a firewall" in found.summary


def test_an_address_of_another_node_is_given_as_the_cause() -> None:
    broken = with_master(with_master(cluster(4), "node02", "not-first-node"), "node03", "refused")
    assert "because the address belongs to node02" in finding("master-refused", broken).summary


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-refused", with_silent(cluster(4), "node03", "refused"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "refused"), "node03")
    assert finding("master-refused", alone).hosts == ("node03",)


def test_where_nobody_is_there_it_is_the_masters_host_that_is_named() -> None:
    met = with_master(cluster(4), "node03", "refused", nobody_there=True)
    found = finding("master-refused", seen_alone(met, "node03"))
    assert found.hosts == (found.evidence[0].subject.split(":")[0].removeprefix("connection to "),)
    assert found.hosts != ("node03",)
    assert "its process was not started or has ended" in found.summary
    # Node 0 that hears of it is there: then the way of that node is at fault.
    assert finding("master-refused", met).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-refused", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-refused", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-refused", cluster(1)).outcome == "not_applicable"


def test_a_node_0_that_says_why_it_does_not_serve_is_quoted() -> None:
    path = {"not_served": "its store cannot be served: the interface lo is down"}
    found = finding("master-refused", with_master(cluster(4), "node03", "refused", **path))
    assert "because node 0 does not serve there: it says that its store cannot be served" in found.summary
    assert "firewall" not in found.summary


def test_where_node_0_serves_instead_is_told_with_its_source_and_the_name_is_what_to_correct() -> None:
    found = finding("master-refused", with_master(cluster(4), "node03", "refused", serves_at="10.0.0.9"))
    assert found.summary.endswith("; a datagram from 10.0.0.9 says that node 0 serves there")
    assert found.fixes[0].env == {"MASTER_ADDR": "10.0.0.9"}
    assert "proves nothing" in found.fixes[0].risk


def test_a_port_that_another_program_holds_on_node_0_is_told_once() -> None:
    held = with_master(cluster(3), "node01", "port-in-use")
    held = with_master(held, "node02", "refused", not_served="python holds the port")
    result = run("master-refused", held)
    assert (result.outcome, result.findings) == ("unknown", ())
    assert "see master-port-in-use" in result.reason
    assert finding("master-port-in-use", held).hosts == ("node01",)
