"""NC206 interface-down."""

from __future__ import annotations

from tests.builders import cluster, with_environment, with_interfaces, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface

UP = interface("eth0", "10.0.0.3/24")


def test_interfaces_that_are_up_are_silent() -> None:
    assert is_silent("interface-down", cluster(4))


def test_the_chosen_one_without_a_carrier_is_an_error() -> None:
    found = finding(
        "interface-down",
        with_interfaces(cluster(4), "node03", interface("eth0", "10.0.0.3/24", running=False)),
    )
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "eth0 is not running (no carrier) on node03" in found.summary


def test_a_named_one_that_is_not_used_is_a_warning() -> None:
    down = interface("eth1", "10.1.0.3/24", up=False, running=False)
    broken = with_environment(
        with_interfaces(cluster(4), "node03", UP, down), "node03", NCCL_SOCKET_IFNAME="eth1,eth0"
    )
    found = finding("interface-down", broken)
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "eth1 is not up on node03, and NCCL_SOCKET_IFNAME names it" in found.summary


def test_the_one_of_gloo_is_a_warning() -> None:
    down = interface("eth1", "10.1.0.3/24", running=False)
    broken = with_environment(
        with_interfaces(cluster(4), "node03", UP, down), "node03", GLOO_SOCKET_IFNAME="eth1"
    )
    assert "GLOO_SOCKET_IFNAME names it" in finding("interface-down", broken).summary


def test_another_one_that_is_down_is_nobodys_business() -> None:
    assert is_silent(
        "interface-down", with_interfaces(cluster(4), "node03", UP, interface("eth1", running=False))
    )


def test_without_interfaces_nothing_is_known() -> None:
    assert run("interface-down", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
