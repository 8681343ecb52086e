"""NC122 resolver-slow."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.facts import Names
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def silent_on(snapshot: Snapshot, host: str, *servers: str) -> Snapshot:
    return with_facts(snapshot, host, names=Names(host, host, ("10.0.0.1",), silent_servers=servers))


def test_servers_that_answer_are_silent() -> None:
    assert is_silent("resolver-slow", cluster(4))


def test_a_server_that_does_not_answer_is_named_with_its_node() -> None:
    found = finding("resolver-slow", silent_on(cluster(4), "node03", "10.0.0.77"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "name server 10.0.0.77 of node03 gives no answer" in found.summary
    assert "node 0" not in found.summary


def test_of_node_0_it_costs_time_with_each_node() -> None:
    found = finding("resolver-slow", silent_on(cluster(4), "node01", "10.0.0.77", "10.0.0.78"))
    assert "for each of 4 nodes: 40 s" in found.summary


def test_nodes_with_the_same_server_are_one_finding() -> None:
    both = silent_on(silent_on(cluster(4), "node03", "10.0.0.77"), "node02", "10.0.0.77")
    assert finding("resolver-slow", both).hosts == ("node02", "node03")


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    assert finding("resolver-slow", with_silent(cluster(4), "node03", "resolver-slow")).hosts == ("node03",)
    why = "the name server 10.0.0.77 of node 0 gave no answer"
    joined = with_master(cluster(4), "node02", "resolver-slow", detail=why)
    assert why in finding("resolver-slow", joined).summary
    alone = replace(joined, viewpoint="one-node")
    assert finding("resolver-slow", alone).severity == "warning"


def test_without_the_fact_nothing_is_known() -> None:
    assert run("resolver-slow", without(cluster(4), "node03", "names")).outcome == "unknown"
