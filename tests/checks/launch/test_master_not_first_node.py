"""NC106 master-not-first-node."""

from __future__ import annotations

from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-not-first-node", cluster(4))


def test_the_owner_of_the_address_is_named() -> None:
    broken = with_master(cluster(4), "node03", "not-first-node", name="10.0.0.3", addresses=("10.0.0.3",))
    found = finding("master-not-first-node", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "10.0.0.3:29500 is an address of node03, which is node rank 2" in found.summary


def test_node_0_that_does_not_own_the_address_says_so() -> None:
    found = finding(
        "master-not-first-node", with_master(cluster(4), "node01", "not-first-node", name="10.0.0.99")
    )
    assert found.hosts == ("node01",)
    assert "is not an address of node01" in found.summary


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-not-first-node", with_silent(cluster(4), "node03", "not-first-node"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "not-first-node"), "node03")
    assert finding("master-not-first-node", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-not-first-node", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-not-first-node", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-not-first-node", cluster(1)).outcome == "not_applicable"


def test_a_node_that_has_node_0s_address_too_is_told_so() -> None:
    shared = {"name": "10.0.0.1", "addresses": ("10.0.0.1",)}
    broken = with_master(cluster(4), "node01", "serving", is_local=True, **shared)
    broken = with_master(broken, "node03", "not-first-node", interface="docker0", **shared)
    found = finding("master-not-first-node", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "node03 has the address of node 0, 10.0.0.1 (docker0), so it connects to itself" in found.summary
