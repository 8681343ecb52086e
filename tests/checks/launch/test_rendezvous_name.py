"""NC114 rendezvous-name."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import NameView, Snapshot, WorkersAddress
from tests.builders import cluster
from tests.checks.launch.test_rendezvous_host import c10d
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import address_of


def named(**views: Fact[tuple[str, ...]]) -> Snapshot:
    """Four nodes whose workers are told the name of node02, and what it resolves to on each."""
    good: Fact[tuple[str, ...]] = (address_of(1),)
    seen = {f"node0{number}": good for number in range(1, 5)} | views
    told = WorkersAddress("aa.cluster", "node02", tuple(NameView(host, view) for host, view in seen.items()))
    return replace(c10d(cluster(4), node01=True), workers_address=told)


def test_a_name_that_leads_there_from_everywhere_is_silent() -> None:
    assert is_silent("rendezvous-name", named())
    assert is_silent("rendezvous-name", named(node02=("127.0.1.1",)))  # on its own node any address does


def test_a_name_that_cannot_be_resolved() -> None:
    found = finding("rendezvous-name", named(node03=Missing("error", "no server"), node04=Missing("absent")))
    assert (found.severity, found.hosts) == ("error", ("node03", "node04"))
    assert "MASTER_ADDR=aa.cluster, the name of node02" in found.summary
    assert "cannot be resolved on node03 and node04" in found.summary
    assert f"--local-addr={address_of(1)}" in found.fixes[0].text


def test_a_name_that_leads_back_or_astray() -> None:
    assert "resolves to 127.0.1.1" in finding("rendezvous-name", named(node01=("127.0.1.1",))).summary
    found = finding("rendezvous-name", named(node01=("192.0.2.9",)))
    assert "resolves to 192.0.2.9, which is not an address of it" in found.summary


def test_another_rendezvous_gives_no_name() -> None:
    assert run("rendezvous-name", cluster(4)).outcome == "not_applicable"


def test_what_was_not_told_is_not_known() -> None:
    assert run("rendezvous-name", c10d(cluster(4), node01=True)).outcome == "unknown"
    late = run("rendezvous-name", named(node03=Missing("timeout", "late")))
    assert late.outcome == "unknown"
    assert "node03" in late.reason
