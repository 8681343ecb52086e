"""NC203 interface-loopback."""

from __future__ import annotations

from tests.builders import cluster, with_choice, with_environment, without
from tests.checks.running import finding, is_silent, run


def test_a_real_interface_is_silent() -> None:
    assert is_silent("interface-loopback", cluster(4))


def test_a_loopback_address_between_nodes_is_an_error() -> None:
    found = finding("interface-loopback", with_choice(cluster(4), "node03", "lo", "127.0.0.1"))
    assert (found.severity, found.hosts) == ("error", ("node03",))


def test_one_node_may_use_it() -> None:
    assert (
        run("interface-loopback", with_choice(cluster(1), "node01", "lo", "127.0.0.1")).outcome
        == "not_applicable"
    )


def test_an_exclusion_is_told_by_its_own_check() -> None:
    broken = with_environment(cluster(4), "node03", NCCL_SOCKET_IFNAME="^docker0")
    result = run("interface-loopback", with_choice(broken, "node03", "lo", "127.0.0.1"))
    assert (result.outcome, result.findings) == ("not_applicable", ())


def test_without_interfaces_nothing_is_known() -> None:
    assert run("interface-loopback", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
