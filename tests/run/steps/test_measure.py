"""Which networks are measured. The real thing is in the lab."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.advice.measured_networks import networks_of, reached_only
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.probe.ring import Ring
from ncclcheck.exchange.probe.ring_plan import plan_ring
from ncclcheck.exchange.roster import Member
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_choice, with_interfaces, with_outcome, with_silent
from tests.fact_builders import host_of, interface, launch, some


def two_networks(count: int = 3) -> Snapshot:
    """eth0 and a faster eth1 on every node; NCCL uses eth0; nothing was measured yet."""
    snapshot = cluster(count)
    probes = [probe for probe in some(snapshot.probes) if probe.kind in ("tcp", "mtu")]
    for number in range(count):
        own = (
            replace(interface("eth0", f"10.0.0.{number + 1}/24"), speed_mbps=1000),
            interface("eth1", f"10.1.0.{number + 1}/24", index=3),
        )
        snapshot = with_interfaces(snapshot, host_of(number), *own)
    probes += [
        replace(probe, interface="eth1", address=probe.address.replace("10.0.", "10.1.")) for probe in probes
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


def ring_of(
    snapshot: Snapshot, agents: tuple[Member, ...], listening: dict[int, tuple[Target, ...]]
) -> Ring | None:
    known = reached_only(snapshot, {agent.host for agent in agents})
    return plan_ring(agents, listening, networks_of(known), some(known.probes))


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
        replace(probe, outcome="filtered")
        if (probe.interface, probe.to_host) == ("eth1", "node02")
        else probe
        for probe in some(snapshot.probes)
    )
    found = ring(replace(snapshot, probes=probes))
    assert {target.interface for target in found.peers[1].targets} == {"eth0"}


def test_where_a_pair_does_not_connect_the_others_are_measured() -> None:
    found = ring(with_outcome(cluster(3), "filtered", [("node01", "node02")]))
    assert found.blocked == ((0, 0, 1),)
    measured = {(source, target) for _, _, source, target in found.transfers()}
    assert measured == {(0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}


def test_where_nobody_connects_nothing_is_measured() -> None:
    hosts = ("node01", "node02", "node03")
    everything = [(source, target) for source in hosts for target in hosts if source != target]
    assert ring_of(with_outcome(cluster(3), "filtered", everything), members(3), targets(3)) is None


def test_where_a_node_is_silent_the_others_are_measured() -> None:
    snapshot = with_silent(cluster(4), "node04")
    found = ring_of(snapshot, members(3), targets(3))
    assert found is not None
    assert [peer.host for peer in found.peers] == ["node01", "node02", "node03"]


def test_a_place_without_a_listener_of_ours_is_not_measured() -> None:
    """NCCL's own listener takes no measurement."""
    library = {
        ticket: tuple(
            replace(target, kind="nccl") if target.interface == "eth1" else target for target in own
        )
        for ticket, own in targets(3).items()
    }
    found = ring_of(two_networks(), members(3), library)
    assert found is not None
    assert [target.interface for target in found.peers[0].targets] == ["eth0"]
