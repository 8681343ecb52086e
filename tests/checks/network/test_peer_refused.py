"""NC210 peer-refused."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, ProbeOutcome
from tests.builders import cluster, into, out_of, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some
from tests.probe_builders import both_ways

SLUG = "peer-refused"
OUTCOME: ProbeOutcome = "refused"


def test_nodes_that_reach_each_other_are_silent() -> None:
    assert is_silent(SLUG, cluster(4))


def test_one_pair_is_named_with_both_ends() -> None:
    found = finding(SLUG, with_outcome(cluster(4), OUTCOME, both_ways("node02", "node04")))
    assert (found.severity, found.hosts) == ("error", ("node02", "node04"))
    assert "node02 and node04 cannot connect to each other on eth0: connections are refused" in found.summary
    assert len(found.evidence) == 2


def test_a_node_that_is_cut_off_is_one_finding_that_names_it() -> None:
    healthy = cluster(4)
    broken = with_outcome(healthy, OUTCOME, (*into(healthy, "node03"), *out_of(healthy, "node03")))
    found = finding(SLUG, broken)
    assert found.hosts == ("node03",)
    assert "node03 is isolated on eth0" in found.summary


def test_where_nobody_reaches_anybody_it_is_said_once() -> None:
    healthy = cluster(4)
    everything = [(probe.from_host, probe.to_host) for probe in some(healthy.probes)]
    found = finding(SLUG, with_outcome(healthy, OUTCOME, everything))
    assert found.hosts == ("node01", "node02", "node03", "node04")
    assert "no node can connect to any other node on eth0" in found.summary


def test_one_direction_belongs_to_peer_one_way() -> None:
    result = run(SLUG, with_outcome(cluster(4), OUTCOME, [("node02", "node04")]))
    assert (result.outcome, result.reason) == ("not_applicable", "only one direction fails: see peer-one-way")


def test_an_interface_that_nccl_does_not_use_is_worth_knowing_only() -> None:
    healthy = cluster(4)
    extra = Probe("tcp", "node01", "node02", "eth1", "10.1.0.2", 40000, OUTCOME)
    found = finding(SLUG, replace(healthy, probes=(*some(healthy.probes), extra)))
    assert (found.severity, found.hosts) == ("info", ("node01", "node02"))


def test_without_probes_or_interfaces_nothing_is_known() -> None:
    assert run(SLUG, replace(cluster(4), probes=Missing("timeout", "no time left"))).outcome == "unknown"
    assert run(SLUG, without(cluster(4), "node03", "interfaces")).outcome == "unknown"


def test_a_planned_pair_without_a_probe_is_not_known() -> None:
    healthy = cluster(4)
    fewer = tuple(
        probe for probe in some(healthy.probes) if (probe.from_host, probe.to_host) != ("node01", "node03")
    )
    result = run(SLUG, replace(healthy, probes=fewer))
    assert (result.outcome, result.reason) == ("unknown", "node01: no tcp probe to node03")
