"""NC205 interface-differs."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_choice, with_interfaces, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, some


def moved(name: str, address: str, prefix: int = 24) -> Snapshot:
    """node03 uses another interface and address, and is reached there."""
    snapshot = with_interfaces(cluster(4), "node03", interface(name, f"{address}/{prefix}"))
    snapshot = with_choice(snapshot, "node03", name, address)
    probes = tuple(
        replace(probe, address=address, interface=name) if probe.to_host == "node03" else probe
        for probe in some(snapshot.probes)
    )
    return replace(snapshot, probes=probes)


def test_one_network_is_silent() -> None:
    assert is_silent("interface-differs", cluster(4))


def test_another_family_is_an_error_where_a_connection_failed() -> None:
    broken = with_outcome(moved("eth0", "fd00::3", 64), "no-route", [("node01", "node03")])
    found = finding("interface-differs", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "IPv6 on node03, IPv4 on node01, node02 and node04" in found.summary
    assert "(node01 and node03: no-route)" in found.summary
    assert "an address of the same family" in found.fixes[0].text


def test_a_family_that_all_nodes_have_is_the_one_to_set() -> None:
    broken = moved("eth0", "10.0.0.3")
    for node in broken.nodes:
        number = node.node_rank + 1
        broken = with_interfaces(
            broken, node.host, interface("eth0", f"10.0.0.{number}/24", f"fd00::{number}/64")
        )
    broken = with_choice(broken, "node03", "eth0", "fd00::3")
    assert finding("interface-differs", broken).fixes[0].env == {"NCCL_SOCKET_FAMILY": "AF_INET"}


def test_another_family_that_all_reach_is_worth_knowing_only() -> None:
    found = finding("interface-differs", moved("eth0", "fd00::3", 64))
    assert (found.severity, found.hosts) == ("info", ("node03",))
    assert "since they have both" in found.summary


def test_another_family_that_nobody_probed_is_a_warning_and_unknown() -> None:
    broken = replace(moved("eth0", "fd00::3", 64), probes=Missing("timeout", "no time left"))
    assert finding("interface-differs", broken).severity == "warning"
    assert "no probes" in run("interface-differs", broken).reason


def test_another_name_in_the_same_network_is_worth_knowing_only() -> None:
    found = finding("interface-differs", moved("ens5", "10.0.0.3"))
    assert (found.severity, found.hosts) == ("info", ("node03",))


def test_another_subnet_that_is_reached_is_worth_knowing_only() -> None:
    found = finding("interface-differs", moved("eth0", "10.7.0.3"))
    assert (found.severity, found.hosts) == ("info", ("node03",))
    assert "10.7.0.0/24 on node03" in found.summary


def test_another_subnet_that_is_not_reached_is_an_error() -> None:
    broken = with_outcome(moved("eth0", "10.7.0.3"), "no-route", [("node01", "node03")])
    found = finding("interface-differs", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "(node01 and node03: no-route)" in found.summary


def test_another_subnet_that_nobody_probed_is_a_warning_and_unknown() -> None:
    broken = replace(moved("eth0", "10.7.0.3"), probes=Missing("timeout", "no time left"))
    assert finding("interface-differs", broken).severity == "warning"
    assert "no probes" in run("interface-differs", broken).reason


def test_addresses_that_are_routed_one_by_one_have_no_subnet_to_compare() -> None:
    assert is_silent("interface-differs", moved("eth0", "10.7.0.3", 32))


def test_without_interfaces_nothing_is_known() -> None:
    assert run("interface-differs", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
