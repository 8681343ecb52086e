"""NC214 mtu-blackhole."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe
from tests.builders import cluster, into, out_of, with_facts, with_outcome, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some
from tests.probe_builders import both_ways


def test_large_packets_that_arrive_are_silent() -> None:
    assert is_silent("mtu-blackhole", cluster(4))


def test_the_pair_is_named_with_its_mtu_and_what_to_set() -> None:
    broken = with_outcome(cluster(4), "stalled", both_ways("node02", "node04"), kind="mtu")
    found = finding("mtu-blackhole", broken)
    assert (found.severity, found.hosts) == ("error", ("node02", "node04"))
    assert "node02 and node04 cannot connect to each other on eth0 with large packets" in found.summary
    assert "node02 9000, node04 9000" in found.summary
    assert found.fixes[0].commands[0] == "sudo ip link set dev eth0 mtu 1500"


def test_below_the_mtu_of_ethernet_the_size_has_to_be_found() -> None:
    broken = with_outcome(cluster(4), "stalled", both_ways("node02", "node04"), kind="mtu")
    for node in broken.nodes:
        eth0 = tuple(replace(one, mtu=1500) for one in some(node.facts.interfaces))
        broken = with_facts(broken, node.host, interfaces=eth0)
    (search, setting, probing) = finding("mtu-blackhole", broken).fixes[0].commands
    assert search.startswith("for size in 1452 1422 1392 1372 ")
    assert "mtu MTU" in setting
    assert "tcp_mtu_probing=1" in probing


def test_one_direction_is_named_as_one() -> None:
    found = finding("mtu-blackhole", with_outcome(cluster(4), "stalled", [("node02", "node04")], kind="mtu"))
    assert "node02 cannot connect to node04" in found.summary


def test_a_node_behind_a_small_switch_port_is_one_finding() -> None:
    healthy = cluster(4)
    ways = (*into(healthy, "node03"), *out_of(healthy, "node03"))
    assert finding("mtu-blackhole", with_outcome(healthy, "stalled", ways, kind="mtu")).hosts == ("node03",)


def test_pairs_that_were_not_probed_are_not_known() -> None:
    healthy = cluster(4)
    small_only = tuple(probe for probe in some(healthy.probes) if probe.kind == "tcp")
    assert run("mtu-blackhole", replace(healthy, probes=small_only)).outcome == "unknown"
    assert run("mtu-blackhole", replace(healthy, probes=Missing("timeout"))).outcome == "unknown"
    assert run("mtu-blackhole", without(healthy, "node03", "interfaces")).outcome == "unknown"


def test_another_interface_that_loses_large_packets_is_worth_knowing() -> None:
    healthy = cluster(4)
    extra = Probe("mtu", "node01", "node02", "eth1", "10.1.0.2", 40000, "stalled")
    found = finding("mtu-blackhole", replace(healthy, probes=(*some(healthy.probes), extra)))
    assert (found.severity, found.hosts) == ("info", ("node01", "node02"))
    assert "small messages arrive on eth1, and large packets are lost" in found.summary
