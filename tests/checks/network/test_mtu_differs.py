"""NC213 mtu-differs."""

from __future__ import annotations

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_interfaces, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface


def smaller(snapshot: Snapshot, host: str, address: str) -> Snapshot:
    return with_interfaces(snapshot, host, interface("eth0", f"{address}/24", mtu=1500))


def test_one_mtu_is_silent() -> None:
    assert is_silent("mtu-differs", cluster(4))


def test_the_odd_node_is_named_with_both_values() -> None:
    found = finding("mtu-differs", smaller(cluster(4), "node03", "10.0.0.3"))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "1500 on node03, 9000 on node01, node02 and node04" in found.summary
    assert found.fixes[0].commands == ("ip link set dev eth0 mtu 9000",)


def test_a_tie_is_said_to_be_one() -> None:
    found = finding("mtu-differs", smaller(cluster(2), "node02", "10.0.0.2"))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_a_proven_black_hole_is_pointed_to() -> None:
    broken = with_outcome(
        smaller(cluster(4), "node03", "10.0.0.3"), "stalled", [("node01", "node03")], kind="mtu"
    )
    assert "see mtu-blackhole" in finding("mtu-differs", broken).summary


def test_an_interface_that_nccl_does_not_use_may_differ() -> None:
    spare = interface("eth1", "10.1.0.3/24", index=3, mtu=1500)
    assert is_silent(
        "mtu-differs", with_interfaces(cluster(4), "node03", interface("eth0", "10.0.0.3/24"), spare)
    )


def test_without_interfaces_nothing_is_known() -> None:
    assert run("mtu-differs", without(cluster(4), "node03", "interfaces")).outcome == "unknown"
