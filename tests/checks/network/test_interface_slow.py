"""NC216 interface-slow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, Silent, Snapshot
from tests.builders import cluster, with_interfaces
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import interface, some
from tests.probe_builders import timed_probes


def changed(snapshot: Snapshot, change: Callable[[Probe], Probe]) -> Snapshot:
    """The snapshot with every bandwidth probe changed."""
    probes = tuple(change(probe) if probe.kind == "bandwidth" else probe for probe in some(snapshot.probes))
    return replace(snapshot, probes=probes)


def scaled(
    snapshot: Snapshot, factor: float, *, source: str | None = None, target: str | None = None
) -> Snapshot:
    """The snapshot in which transfers from or to a host, or all, are so many times as fast."""

    def change(probe: Probe) -> Probe:
        mine = source in (None, probe.from_host) and target in (None, probe.to_host)
        return replace(probe, value=(probe.value or 0.0) * factor) if mine else probe

    return changed(snapshot, change)


def limited(snapshot: Snapshot, **shares: float) -> Snapshot:
    """The snapshot in which the CPU was that busy."""
    return changed(
        snapshot,
        lambda probe: replace(probe, measured=replace(probe.measured, **shares) if probe.measured else None),
    )


def with_second_network(snapshot: Snapshot, gbit_s: float) -> Snapshot:
    """The snapshot with eth1 on every node, on which so much was measured."""
    count = len(snapshot.nodes)
    for number, node in enumerate(snapshot.nodes):
        own = (
            interface("eth0", f"10.0.0.{number + 1}/24"),
            interface("eth1", f"10.1.0.{number + 1}/24", index=3),
        )
        snapshot = with_interfaces(snapshot, node.host, *own)
    more = tuple(
        probe for probe in timed_probes(count, "eth1", "10.1.0", gbit_s) if probe.kind == "bandwidth"
    )
    return replace(snapshot, probes=(*some(snapshot.probes), *more))


def test_equal_networks_are_silent() -> None:
    assert is_silent("interface-slow", with_second_network(cluster(4), 94.0))
    assert is_silent("interface-slow", with_second_network(cluster(2), 60.0))


@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_a_network_that_is_faster_than_nccls_is_named_with_both_speeds(nodes: int) -> None:
    snapshot = with_second_network(scaled(cluster(nodes), 0.6), 94.0)
    found = finding("interface-slow", snapshot)
    assert (found.severity, len(found.hosts)) == ("warning", nodes)
    assert "NCCL would use eth0, which carries 5" in found.summary
    assert "eth1, which carries 9" in found.summary
    assert [evidence.subject for evidence in found.evidence] == ["bandwidth on eth0", "bandwidth on eth1"]


def test_a_network_that_is_a_little_faster_is_not_worth_a_word() -> None:
    assert is_silent("interface-slow", with_second_network(scaled(cluster(4), 0.8), 94.0))


def test_values_that_overlap_say_nothing() -> None:
    snapshot = with_second_network(scaled(scaled(cluster(4), 0.55), 1.8, source="node02"), 94.0)
    assert is_silent("interface-slow", snapshot)


def test_a_value_that_the_cpu_limited_is_not_called_slow() -> None:
    snapshot = limited(scaled(cluster(4), 0.2), cpu_share=1.0)
    assert is_silent("interface-slow", with_second_network(snapshot, 94.0))
    alone = limited(scaled(cluster(4), 0.2, source="node02"), cpu_share=1.0)
    assert is_silent("interface-slow", alone)


def test_a_slow_sender_is_named_and_not_its_receivers() -> None:
    found = finding("interface-slow", scaled(cluster(4), 0.3, source="node02"))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "node02 sends with 27" in found.summary
    assert "this direction only" in found.summary
    assert {evidence.hosts[0] for evidence in found.evidence} == {"node02"}


def test_a_slow_receiver_is_named_and_not_its_senders() -> None:
    found = finding("interface-slow", scaled(cluster(3), 0.3, target="node03"))
    assert found.hosts == ("node03",)
    assert "node03 receives with 2" in found.summary


def test_a_node_that_is_slow_both_ways_is_one_finding() -> None:
    snapshot = scaled(scaled(cluster(4), 0.1, target="node03"), 0.1, source="node03")
    found = finding("interface-slow", snapshot)
    assert found.hosts == ("node03",)
    assert "both directions" in found.summary


def test_a_slow_pair_is_named_with_its_direction() -> None:
    found = finding("interface-slow", scaled(cluster(8), 0.2, source="node02", target="node03"))
    assert found.hosts == ("node02", "node03")
    assert "node02 sends to node03" in found.summary


def test_many_slow_pairs_are_one_finding() -> None:
    far = {(f"node{one + 1:02d}", f"node{(one + 8) % 16 + 1:02d}") for one in range(16)}
    snapshot = changed(
        cluster(16),
        lambda probe: replace(probe, value=20.0) if (probe.from_host, probe.to_host) in far else probe,
    )
    assert "16 of 48 transfers" in finding("interface-slow", snapshot).summary


def test_of_two_nodes_none_is_called_the_slow_one() -> None:
    assert run("interface-slow", scaled(cluster(2), 0.7, source="node01")).findings == ()


def with_speed(snapshot: Snapshot, host: str, address: str, mbps: int) -> Snapshot:
    return with_interfaces(snapshot, host, replace(interface("eth0", f"{address}/24"), speed_mbps=mbps))


def test_a_link_that_came_up_slower_is_named_with_both_speeds() -> None:
    found = finding("interface-slow", with_speed(cluster(4), "node02", "10.0.0.2", 50_000))
    assert found.hosts == ("node02",)
    assert "50 Gbit/s on node02, 100 Gbit/s on node01, node03 and node04" in found.summary


def test_a_link_that_is_faster_than_the_others_harms_nobody() -> None:
    assert is_silent("interface-slow", with_speed(cluster(4), "node02", "10.0.0.2", 150_000))


def test_a_tie_names_the_slower_ones() -> None:
    found = finding("interface-slow", with_speed(cluster(2), "node02", "10.0.0.2", 60_000))
    assert found.hosts == ("node02",)


def test_far_below_the_link_is_an_information_unless_the_cpu_was_busy() -> None:
    found = finding("interface-slow", scaled(cluster(4), 0.2))
    assert found.severity == "info"
    assert "far below its link's 100 Gbit/s" in found.summary
    assert is_silent("interface-slow", limited(scaled(cluster(4), 0.2), core_share=0.97))


def test_a_transfer_that_came_to_nothing_is_not_passed() -> None:
    def stop(probe: Probe) -> Probe:
        mine = (probe.from_host, probe.to_host) == ("node02", "node03")
        return replace(probe, outcome="stalled", value=None, detail="node03: nothing came") if mine else probe

    result = run("interface-slow", changed(cluster(4), stop))
    assert result.outcome == "unknown"
    assert result.reason == "node02: the transfer to node03 ended as stalled: node03: nothing came"


def test_without_measurements_nothing_is_known() -> None:
    kept = tuple(probe for probe in some(cluster(4).probes) if probe.kind != "bandwidth")
    assert run("interface-slow", replace(cluster(4), probes=kept)).outcome == "unknown"
    lost = replace(cluster(4), probes=Missing("error", "lost"))
    assert run("interface-slow", lost).outcome == "unknown"


@pytest.mark.parametrize("factor", [0.001, 0.01, 0.3])
def test_a_finding_has_one_unit(factor: float) -> None:
    for gbit_s, unit, other in ((94.0, "Gbit/s", "Mbit/s"), (0.9, "Mbit/s", "Gbit/s")):
        snapshot = scaled(scaled(cluster(4), gbit_s / 94.0), factor, source="node02")
        found = next(one for one in run("interface-slow", snapshot).findings if one.severity == "warning")
        words = f"{found.summary} {found.evidence}"
        assert unit in words
        assert other not in words


def test_of_two_nodes_one_direction_is_called_slow_and_both_hosts_are_named() -> None:
    found = finding("interface-slow", scaled(cluster(2), 0.1, source="node01"))
    assert found.hosts == ("node01", "node02")
    assert (
        "node01 sends to node02 on eth0 with 9.31 Gbit/s, while 92.1 Gbit/s is measured in the other direction"
        in found.summary
    )
    assert "either link can be the cause" in found.summary


def test_what_was_measured_again_says_how_often() -> None:
    def tried(probe: Probe) -> Probe:
        assert probe.measured is not None
        return replace(probe, measured=replace(probe.measured, transfers=3))

    snapshot = changed(scaled(cluster(8), 0.2, source="node02", target="node03"), tried)
    found = finding("interface-slow", snapshot)
    assert "the best of 3 transfers" in found.evidence[0].observed


def test_far_below_the_link_leaves_out_what_is_called_slow() -> None:
    snapshot = scaled(scaled(cluster(4), 0.2), 0.1, source="node02")
    warning, info = run("interface-slow", snapshot).findings
    assert (warning.hosts, info.severity) == (("node02",), "info")
    assert "in 9 transfers" in info.evidence[0].observed


def test_where_a_third_node_fell_silent_the_two_that_are_left_are_not_compared() -> None:
    left = scaled(cluster(3), 0.3, source="node01", target="node02")
    left = changed(left, lambda probe: lost_to("node03", probe))
    assert "with only two nodes measured" in finding("interface-slow", left).summary
    result = run("interface-slow", replace(left, silent=(Silent("node03", 2, "probes", 5.0),)))
    assert result.findings == ()
    assert result.outcome == "unknown"


def lost_to(host: str, probe: Probe) -> Probe:
    """The transfer from or to this host that came to nothing."""
    return replace(probe, value=None, outcome="error") if host in (probe.from_host, probe.to_host) else probe
