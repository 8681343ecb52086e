"""NC220 link-flapped."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import LinkCounters
from tests.builders import cluster, node, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, some
from tests.soak_builders import healthy_lines, with_soak


def flapped(name: str = "eth0", changes: int = 4) -> tuple[LinkCounters, ...]:
    return (LinkCounters(name, {"carrier_changes": 2}, {"carrier_changes": 2 + changes}),)


def test_a_healthy_cluster_passes() -> None:
    assert is_silent("link-flapped", cluster(3))


def test_the_interface_that_nccl_uses_is_an_error_and_another_card_a_warning() -> None:
    found = finding("link-flapped", with_facts(cluster(3), "node02", link_counters=flapped()))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "eth0 on node02 (NCCL's interface) went down or came up 4 times" in found.summary
    snapshot = cluster(3)
    own = some(node(snapshot, "node02").facts.interfaces)
    more = (*own, replace(interface("eth1", "10.9.0.2/24"), index=7))
    found = finding(
        "link-flapped", with_facts(snapshot, "node02", interfaces=more, link_counters=flapped("eth1"))
    )
    assert found.severity == "warning"


def test_the_interface_of_a_container_comes_and_goes() -> None:
    assert is_silent("link-flapped", with_facts(cluster(3), "node02", link_counters=flapped("veth12")))


def test_what_was_read_once_is_not_passed() -> None:
    once = (LinkCounters("eth0", {"carrier_changes": 2}, Missing("absent", "read once only")),)
    assert run("link-flapped", with_facts(cluster(3), "node02", link_counters=once)).outcome == "unknown"
    assert run("link-flapped", without(cluster(3), "node02", "link_counters")).outcome == "unknown"


def test_in_a_soak_another_check_judges_the_carriers() -> None:
    assert run("link-flapped", with_soak(cluster(4), healthy_lines())).outcome == "not_applicable"
