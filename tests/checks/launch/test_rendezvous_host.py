"""NC113 rendezvous-host."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Names
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, seen_alone, with_facts, with_interfaces, with_master, with_silent
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import docker0, loopback


def c10d(snapshot: Snapshot, **serves: bool) -> Snapshot:
    """The cluster as it meets by torch's c10d rendezvous; the named nodes take themselves for the host."""
    claims = tuple(
        replace(
            claim,
            source="launch-line",
            rendezvous="c10d",
            master_addr="head",
            master_port=29400,
            serves_store=serves.get(host, False),
        )
        for claim, host in zip(snapshot.claims, snapshot.claim_hosts, strict=True)
    )
    for host, claim in zip(snapshot.claim_hosts, claims, strict=True):
        snapshot = with_facts(snapshot, host, launch=claim)
    return replace(snapshot, claims=claims)


def test_one_host_is_silent() -> None:
    assert is_silent("rendezvous-host", c10d(cluster(4), node01=True))


def test_another_rendezvous_has_no_host() -> None:
    assert run("rendezvous-host", cluster(4)).outcome == "not_applicable"


def test_nobody_is_the_host_and_the_owner_of_the_address_is_named() -> None:
    broken = with_facts(
        c10d(cluster(4)), "node01", names=Names("node01", "node01", ("127.0.1.1", "10.0.0.1"))
    )
    found = finding("rendezvous-host", broken)
    assert (found.severity, found.hosts) == ("error", ("node01",))
    assert "no node recognises itself as the host of the rendezvous endpoint head:29400" in found.summary
    assert "its own name is 'node01', which is 127.0.1.1, 10.0.0.1 there" in found.evidence[0].observed
    assert "is_host=1" in found.fixes[0].text
    assert "--rdzv-endpoint=10.0.0.1:29400" in found.fixes[1].text


def test_a_node_that_met_nobody_names_the_possible_cause() -> None:
    alone = seen_alone(with_master(c10d(cluster(4)), "node03", "refused"), "node03")
    found = finding("rendezvous-host", alone)
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    filtered = seen_alone(with_master(c10d(cluster(4)), "node03", "filtered"), "node03")
    assert run("rendezvous-host", filtered).outcome == "unknown"


def test_a_host_by_a_loopback_address_to_which_the_others_did_not_come() -> None:
    broken = with_silent(c10d(cluster(4), node01=True), "node03")
    broken = with_master(broken, "node01", "loopback", name="head", addresses=("127.0.1.1",))
    found = finding("rendezvous-host", broken)
    assert (found.severity, found.hosts) == ("error", ("node01",))
    assert "head:29400 is 127.0.1.1 on node01, which is loopback" in found.summary


def test_or_by_the_address_of_a_bridge_that_each_may_have() -> None:
    broken = with_silent(c10d(cluster(4), node01=True), "node03")
    broken = with_interfaces(broken, "node01", loopback(), docker0())
    broken = with_master(broken, "node01", "serving", name="head", addresses=("172.17.0.1",))
    assert "docker0" in finding("rendezvous-host", broken).summary


def test_the_address_of_a_containers_own_interface_is_nobody_elses() -> None:
    broken = with_silent(c10d(cluster(4), node01=True), "node03")
    veth = replace(docker0(), name="eth0", kind="virtual")
    broken = with_interfaces(broken, "node01", loopback(), veth)
    broken = with_master(broken, "node01", "serving", name="head", addresses=("172.17.0.1",))
    assert run("rendezvous-host", broken).findings == ()


def test_a_silent_node_alone_is_not_the_hosts_fault() -> None:
    result = run("rendezvous-host", with_silent(c10d(cluster(4), node01=True), "node03"))
    assert (result.outcome, result.findings) == ("unknown", ())


def test_without_the_way_of_the_host_nothing_is_known() -> None:
    broken = with_facts(
        with_silent(c10d(cluster(4), node01=True), "node03"), "node01", master=Missing("error", "x")
    )
    result = run("rendezvous-host", broken)
    assert result.outcome == "unknown"
    assert "node01" in result.reason
