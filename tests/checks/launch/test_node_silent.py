"""NC101 node-silent."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.isolation import NO_ANSWER, BadLink
from ncclcheck.model.snapshot import Refused, Silent
from tests.builders import cluster, left_alone, seen_alone, with_master, with_silent
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import launch
from tests.isolation_builders import isolated


def test_all_came() -> None:
    assert is_silent("node-silent", cluster(4))


def test_a_node_that_never_came_is_named_as_a_warning() -> None:
    found = finding("node-silent", with_silent(cluster(4), "node03"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "node rank 2" in found.summary
    assert "30 s" in found.summary


def test_several_in_the_same_phase_are_one_finding() -> None:
    found = finding("node-silent", with_silent(with_silent(cluster(4), "node03"), "node04"))
    assert found.hosts == ("node03", "node04")


def test_what_it_said_by_datagram_is_told() -> None:
    found = finding("node-silent", with_silent(cluster(4), "node03", "filtered"))
    assert "node03 says it cannot reach 10.0.0.1:29500 (filtered" in found.summary


def test_nodes_with_different_causes_are_different_findings() -> None:
    two = with_silent(with_silent(cluster(4), "node03", "filtered"), "node04", "refused")
    assert [found.hosts for found in run("node-silent", two).findings] == [("node03",), ("node04",)]


def test_a_duplicate_rank_is_given_as_the_likely_cause() -> None:
    short = with_silent(cluster(4), "node03")
    twice = replace(short, claims=(*short.claims, launch(1, 4)), claim_hosts=(*short.claim_hosts, "node03"))
    assert "node02 and node03 both joined as node rank 1" in finding("node-silent", twice).summary


def test_different_sizes_are_given_as_the_likely_cause() -> None:
    short = with_silent(cluster(4), "node03")
    claims = (*short.claims[:-1], launch(3, 5))
    assert "number of nodes (4, 5)" in finding("node-silent", replace(short, claims=claims)).summary


def test_a_refused_message_is_given_as_the_cause() -> None:
    short = replace(
        with_silent(cluster(4), "node03"), refused=(Refused("node03", "facts", "104857600 bytes"),)
    )
    assert "104857600 bytes" in finding("node-silent", short).summary


def test_node_0_that_was_lost_is_named_by_the_node_that_is_left_alone() -> None:
    alone = seen_alone(with_master(cluster(4), "node02", "lost"), "node02")
    found = finding("node-silent", alone)
    assert (found.severity, found.hosts) == ("warning", ("10.0.0.1",))
    assert "and then stopped answering" in found.summary


def test_node_0_that_was_lost_in_the_middle_is_named_as_it_named_itself_with_the_phase() -> None:
    found = finding("node-silent", left_alone(with_master(cluster(4), "node02", "lost"), "node02"))
    assert found.hosts == ("node01",)
    assert "node 0 (node01) answered node02 and then stopped answering during the benchmark" in found.summary


def test_a_node_that_met_nobody_cannot_tell() -> None:
    assert run("node-silent", seen_alone(cluster(4), "node02")).outcome == "unknown"


def test_one_node_has_nobody_to_wait_for() -> None:
    assert run("node-silent", cluster(1)).outcome == "not_applicable"


def test_requests_that_arrived_though_the_node_never_joined_are_told() -> None:
    snapshot = replace(with_silent(cluster(4), "node03"), unanswered_callers=("10.0.0.3",))
    assert "connection requests from 10.0.0.3 arrive at node 0" in finding("node-silent", snapshot).summary


def test_a_node_that_others_reached_is_not_accused_of_its_silence() -> None:
    ends = (("node03", "node01"), ("node01", "node03"))
    links = tuple(BadLink(*way, "blocked", f"{NO_ANSWER}; called by node02, it answers") for way in ends)
    silent = (Silent("node03", 2, "end", 0.0),)
    result = run("node-silent", replace(cluster(4), silent=silent, isolation=isolated(links=links)))
    assert (result.outcome, result.findings) == ("unknown", ())
    assert "node03: it lives" in result.reason
    other = replace(
        cluster(4), silent=silent, isolation=isolated(links=(BadLink("node03", "node02", "blocked", "x"),))
    )
    assert finding("node-silent", other).hosts == ("node03",)
