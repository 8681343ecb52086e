"""NC212 peer-one-way."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Silent
from tests.builders import cluster, into, out_of, with_choice, with_interfaces, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, some
from tests.probe_builders import both_ways


def test_open_ways_are_silent() -> None:
    assert is_silent("peer-one-way", cluster(4))


def test_the_direction_is_named_with_its_outcome() -> None:
    found = finding("peer-one-way", with_outcome(cluster(4), "filtered", [("node02", "node04")]))
    assert (found.severity, found.hosts) == ("error", ("node02", "node04"))
    assert (
        "node02 cannot connect to node04 at 10.0.0.4 (eth0), though node04 can connect to node02: filtered"
        in found.summary
    )


def test_it_is_the_only_finding_about_that_pair() -> None:
    broken = with_outcome(cluster(4), "refused", [("node02", "node04")])
    found = [finding.slug for check in all_checks() for finding in run_check(check, broken).findings]
    assert found == ["peer-one-way"]


def test_a_node_that_nobody_reaches_is_one_finding_that_names_it() -> None:
    found = finding("peer-one-way", with_outcome(cluster(4), "filtered", into(cluster(4), "node03")))
    assert found.hosts == ("node03",)
    assert (
        "no node can connect to node03 at 10.0.0.3 (eth0), though node03 can connect to them" in found.summary
    )


def test_a_node_that_reaches_nobody_is_one_finding_that_names_it() -> None:
    found = finding("peer-one-way", with_outcome(cluster(4), "filtered", out_of(cluster(4), "node03")))
    assert found.hosts == ("node03",)
    assert "node03 cannot connect to any node on eth0" in found.summary


def test_both_directions_are_another_matter() -> None:
    assert is_silent("peer-one-way", with_outcome(cluster(4), "filtered", both_ways("node02", "node04")))


def test_without_probes_or_interfaces_nothing_is_known() -> None:
    assert run("peer-one-way", replace(cluster(4), probes=Missing("timeout"))).outcome == "unknown"
    assert run("peer-one-way", without(cluster(4), "node03", "interfaces")).outcome == "unknown"


def test_a_node_whose_process_ended_meanwhile_refuses_nobody() -> None:
    refused = with_outcome(cluster(4), "refused", [("node02", "node04"), ("node03", "node04")])
    ended = replace(refused, silent=(Silent("node04", 3, "probes", 5.0),))
    result = run("peer-one-way", ended)
    assert result.findings == ()
    assert result.outcome == "unknown"
    assert run("peer-refused", ended).findings == ()


def test_a_node_behind_nat_has_no_rule_to_be_found() -> None:
    found = finding("peer-one-way", with_outcome(cluster(3), "no-route", into(cluster(3), "node03")))
    assert "NAT" in found.summary
    assert "masquerade" in found.fixes[0].commands[1]
    assert "no-route in" not in found.summary


def test_an_address_of_a_family_that_the_callers_lack_is_no_nat() -> None:
    broken = with_interfaces(cluster(3), "node03", interface("eth0", "fd00::3/64"))
    broken = with_choice(broken, "node03", "eth0", "fd00::3")
    probes = tuple(
        replace(probe, address="fd00::3") if probe.to_host == "node03" else probe
        for probe in some(broken.probes)
    )
    broken = replace(broken, probes=probes)
    found = finding("peer-one-way", with_outcome(broken, "no-route", into(broken, "node03")))
    assert found.hosts == ("node03",)
    assert "they have no IPv6 address" in found.summary
    assert "NAT" not in found.summary


def test_the_route_to_look_for_is_written_out() -> None:
    found = finding("peer-one-way", with_outcome(cluster(4), "no-route", into(cluster(4), "node03")))
    assert found.fixes[0].commands[0] == "ip route get 10.0.0.3   # on node01"
