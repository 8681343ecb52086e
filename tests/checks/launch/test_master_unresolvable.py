"""NC104 master-unresolvable."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from tests.builders import cluster, seen_alone, with_master, with_silent, without
from tests.checks.running import finding, is_silent, run


def test_a_healthy_way_is_silent() -> None:
    assert is_silent("master-unresolvable", cluster(4))


def test_those_who_cannot_resolve_it_are_named_and_those_who_can_help() -> None:
    missing = Missing("absent", "head: Name or service not known")
    broken = with_master(cluster(4), "node03", "unresolvable", name="head", addresses=missing)
    broken = with_master(broken, "node01", "serving", name="head")
    found = finding("master-unresolvable", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "cannot resolve MASTER_ADDR 'head'" in found.summary
    assert found.fixes[0].env == {"MASTER_ADDR": "10.0.0.1"}


def test_an_address_in_brackets_is_no_name() -> None:
    missing = Missing("absent", "[fd66::1]: Name or service not known")
    broken = with_master(cluster(4), "node03", "unresolvable", name="[fd66::1]", addresses=missing)
    (fix,) = finding("master-unresolvable", broken).fixes
    assert fix.text == "write the address without brackets: fd66::1"
    assert fix.env == {"MASTER_ADDR": "fd66::1"}


def test_all_who_cannot_are_one_finding() -> None:
    broken = cluster(4)
    for host in ("node02", "node03", "node04"):
        broken = with_master(broken, host, "unresolvable")
    assert finding("master-unresolvable", broken).hosts == ("node02", "node03", "node04")


def test_the_word_of_a_node_that_could_not_join_counts() -> None:
    found = finding("master-unresolvable", with_silent(cluster(4), "node03", "unresolvable"))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert found.evidence[-1].source == "datagram to node 0"


def test_a_node_that_met_nobody_still_tells_its_own_way() -> None:
    alone = seen_alone(with_master(cluster(4), "node03", "unresolvable"), "node03")
    assert finding("master-unresolvable", alone).hosts == ("node03",)


def test_without_the_fact_nothing_is_known() -> None:
    result = run("master-unresolvable", without(cluster(4), "node03", "master"))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


def test_a_node_without_a_word_keeps_it_unknown() -> None:
    assert run("master-unresolvable", with_silent(cluster(4), "node03")).outcome == "unknown"


def test_one_node_needs_no_master() -> None:
    assert run("master-unresolvable", cluster(1)).outcome == "not_applicable"


def test_a_scheme_is_no_part_of_a_name() -> None:
    missing = Missing("absent", "tcp://head: Name or service not known")
    broken = with_master(cluster(4), "node03", "unresolvable", name="tcp://head", addresses=missing)
    (fix,) = finding("master-unresolvable", broken).fixes
    assert (fix.text, fix.env) == ("write the name alone: head", {"MASTER_ADDR": "head"})
