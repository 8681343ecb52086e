"""Node 0's part of measuring: which networks, and what is made of what the nodes say. The real thing is in the lab."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.messages import SCHEMA, Timed
from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.probe.ring import Ring
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, Snapshot
from ncclcheck.run.lead import Member
from ncclcheck.run.measuring import bandwidths, busier, networks_of, ring_of, round_trips, together
from tests.builders import cluster, with_choice, with_interfaces, with_outcome, with_silent
from tests.fact_builders import host_of, interface, launch, some

GONE = Missing("unsupported", "not told")


def two_networks(count: int = 3) -> Snapshot:
    """eth0 and a faster eth1 on every node; NCCL uses eth0; nothing was measured yet."""
    snapshot = cluster(count)
    probes = [one for one in some(snapshot.probes) if one.kind in ("tcp", "mtu")]
    for number in range(count):
        own = (
            replace(interface("eth0", f"10.0.0.{number + 1}/24"), speed_mbps=1000),
            interface("eth1", f"10.1.0.{number + 1}/24", index=3),
        )
        snapshot = with_interfaces(snapshot, host_of(number), *own)
    probes += [
        replace(one, interface="eth1", address=one.address.replace("10.0.", "10.1.")) for one in probes
    ]
    return replace(snapshot, probes=tuple(probes))


def members(count: int) -> tuple[Member, ...]:
    return tuple(Member(number + 1, launch(number, count), host_of(number)) for number in range(count))


def targets(count: int) -> dict[int, tuple[Target, ...]]:
    return {
        number + 1: (
            Target("eth1", f"10.1.0.{number + 1}", 5001),
            Target("eth0", f"10.0.0.{number + 1}", 5000),
        )
        for number in range(count)
    }


def ring(snapshot: Snapshot) -> Ring:
    found = ring_of(snapshot, members(3), targets(3))
    assert found is not None
    return found


def test_nccls_own_network_comes_first_though_another_is_faster() -> None:
    assert [places["node01"][0] for places in networks_of(two_networks())] == ["eth0", "eth1"]
    found = ring(two_networks())
    assert found.plan.networks == 2
    assert [[target.interface for target in peer.targets] for peer in found.peers] == [["eth0", "eth1"]] * 3
    assert [peer.ticket for peer in found.peers] == [1, 2, 3]


def test_a_mixed_choice_of_nccl_is_measured_as_it_is() -> None:
    snapshot = with_choice(two_networks(), "node02", "eth1", "10.1.0.2")
    first, *_ = networks_of(snapshot)
    assert first == {
        "node01": ("eth0", "10.0.0.1"),
        "node02": ("eth1", "10.1.0.2"),
        "node03": ("eth0", "10.0.0.3"),
    }


def test_a_network_that_does_not_connect_everybody_is_left_out() -> None:
    snapshot = two_networks()
    probes = tuple(
        replace(one, outcome="filtered") if (one.interface, one.to_host) == ("eth1", "node02") else one
        for one in some(snapshot.probes)
    )
    found = ring(replace(snapshot, probes=probes))
    assert {target.interface for target in found.peers[1].targets} == {"eth0"}


def test_where_nobody_reaches_everybody_nothing_is_measured() -> None:
    blocked = with_outcome(cluster(3), "filtered", [("node01", "node02")])
    assert ring_of(blocked, members(3), targets(3)) is None
    assert ring_of(with_silent(cluster(3), "node03"), members(3), targets(3)) is None


def test_a_place_without_a_listener_of_ours_is_not_measured() -> None:
    """NCCL's own listener takes no measurement."""
    library = {
        ticket: tuple(replace(one, kind="nccl") if one.interface == "eth1" else one for one in those)
        for ticket, those in targets(3).items()
    }
    found = ring_of(two_networks(), members(3), library)
    assert found is not None
    assert [target.interface for target in found.peers[0].targets] == ["eth0"]


def said(ticket: int, count: int) -> Timed:
    """A node whose transfers all went well: it sent with `ticket` MB/s less than it received."""
    sent = tuple(Sent(number, "ok", "", f"10.0.0.{ticket}", 0.25, 0.5) for number in range(count))
    received = tuple(Received(number, "ok", "", 125e6, 0.1, 0.5, 0.75) for number in range(count))
    return Timed(SCHEMA, "0", sent=sent, received=received)


def test_each_transfer_is_one_probe_of_what_both_ends_say() -> None:
    found = ring(two_networks())
    probes = bandwidths(found, {ticket: said(ticket, found.plan.rounds) for ticket in (1, 2, 3)}, found)
    assert len(probes) == 12
    assert {one.interface for one in probes[:6]} == {"eth0"}
    assert {(one.from_host, one.to_host) for one in probes[:6]} == {
        (host_of(one), host_of(other)) for one in range(3) for other in range(3) if one != other
    }
    first = probes[0]
    assert (first.kind, first.outcome, first.value, first.unit) == ("bandwidth", "ok", 1.0, "Gbit/s")
    assert first.measured is not None
    assert first.measured.source_address == "10.0.0.1"
    assert (first.measured.cpu_share, first.measured.core_share) == (0.75, 0.75)


def test_a_transfer_of_which_one_end_said_nothing_has_no_value() -> None:
    found = ring(two_networks())
    probes = bandwidths(found, {ticket: said(ticket, found.plan.rounds) for ticket in (1, 2)}, found)
    lost = [one for one in probes if one.value is None]
    assert {frozenset((one.from_host, one.to_host)) for one in lost} == {
        frozenset(("node01", "node03")),
        frozenset(("node02", "node03")),
    }
    assert {(one.outcome, one.detail) for one in lost} == {("error", "node03 did not tell how it went")}


def test_the_end_that_failed_is_named() -> None:
    found = ring(two_networks())
    answers = {ticket: said(ticket, found.plan.rounds) for ticket in (1, 2, 3)}
    failed = (Received(0, "stalled", "data came at first, and then no more"), *answers[2].received[1:])
    probes = bandwidths(found, {**answers, 2: replace(answers[2], received=failed)}, found)
    (lost,) = [one for one in probes if one.outcome != "ok"]
    assert (lost.from_host, lost.to_host, lost.outcome) == ("node01", "node02", "stalled")
    assert lost.detail == "node02: data came at first, and then no more"


def test_a_node_speaks_for_itself_only() -> None:
    found = ring(two_networks())
    probe = Probe("latency", "node03", "node02", "eth0", "10.0.0.2", 5000, "ok", 40.0, "us")
    foreign = replace(probe, address="192.0.2.1")
    (kept,) = round_trips(found, {1: Timed(SCHEMA, "0", latencies=(replace(probe, kind="tcp"), foreign))})
    assert kept == replace(probe, from_host="node01")


def test_shares_of_both_ends_are_put_together() -> None:
    assert together(0.7, 0.6) == 1.0
    assert together(0.25, 0.5) == 0.75
    assert together(GONE, 0.5) == GONE
    assert together(0.5, GONE) == GONE
    assert busier(0.5, 0.7) == 0.7
    assert busier(GONE, 0.7) == 0.7
    assert busier(0.5, GONE) == 0.5
