"""Random clusters with one slow link: every node is led to the same network, and only where that is clearly faster."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.gloo import advise_gloo
from ncclcheck.advice.interface import decide
from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import read_reach
from ncclcheck.advice.speed import best_first
from ncclcheck.measure.links.rounds import plan_rounds
from ncclcheck.model.snapshot import Measured, Probe, Snapshot
from tests.advice.clusters import of_nodes, unasked
from tests.fact_builders import host_of, interface, some

NAMES = ("eth0", "eth1", "eth2", "ens5", "enp1s0", "p1p1", "net1")
Way = Literal["sends", "receives", "both", "pair"]


class Fault(Struct, frozen=True):
    """What is slow: so many times, in one network, at one node or on the way from it to the next."""

    network: int
    node: int
    way: Way
    times: float

    def factor(self, network: int, source: int, target: int, nodes: int) -> float:
        """How much of its speed a transfer keeps."""
        hit = {
            "sends": source == self.node,
            "receives": target == self.node,
            "both": self.node in (source, target),
            "pair": (source, target) == (self.node, (self.node + 1) % nodes),
        }
        return 1 / self.times if network == self.network and hit[self.way] else 1.0


class World(Struct, frozen=True):
    """The nodes' names for their interfaces, one per network, the networks' speed, and what is wrong."""

    names: tuple[tuple[str, ...], ...]
    gbit_s: tuple[float, ...]
    fault: Fault | None
    noise: tuple[float, ...]

    def place(self, network: int, node: int) -> tuple[str, str]:
        return self.names[node][network], f"10.0.{network}.{node + 1}"

    def places(self, network: int) -> dict[str, tuple[str, str]]:
        return {host_of(node): self.place(network, node) for node in range(len(self.names))}

    def carried(self, network: int, source: int, target: int) -> float:
        """What a transfer carries, without noise."""
        kept = self.fault.factor(network, source, target, len(self.names)) if self.fault else 1.0
        return self.gbit_s[network] * kept

    def pace(self, network: int) -> float:
        """What a collective has to wait for."""
        nodes = range(len(self.names))
        return min(self.carried(network, node, other) for node in nodes for other in nodes if node != other)

    def snapshot(self) -> Snapshot:
        nodes = len(self.names)
        sections: list[dict[str, Any]] = [
            unasked(
                *(
                    interface(*_with_prefix(self.place(network, node)), index=network + 2)
                    for network in range(len(self.gbit_s))
                )
            )
            for node in range(nodes)
        ]
        snapshot = of_nodes(*sections)
        measured = [
            Probe(
                "bandwidth",
                host_of(node),
                host_of((node + shift) % nodes),
                *self.place(network, (node + shift) % nodes),
                40000,
                "ok",
                self.carried(network, node, (node + shift) % nodes)
                * self.noise[(network + 3 * shift + 5 * node) % len(self.noise)],
                "Gbit/s",
                measured=Measured(4, 0.1, "10.0.0.1", cpu_share=0.2),
            )
            for network in range(len(self.gbit_s))
            for shift in plan_rounds(nodes, 1).shifts
            for node in range(nodes)
        ]
        return replace(snapshot, probes=(*some(snapshot.probes), *measured))


def _with_prefix(place: tuple[str, str]) -> tuple[str, str]:
    return place[0], f"{place[1]}/24"


@st.composite
def worlds(draw: st.DrawFn, *, faulty: bool = True) -> World:
    """Two to six nodes with one to three networks that are equal but for the fault."""
    nodes, networks = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    common = tuple(f"eth{number}" for number in range(networks))
    own = st.lists(st.sampled_from(NAMES), min_size=networks, max_size=networks, unique=True).map(tuple)
    names = tuple(draw(st.one_of(st.just(common), st.just(common), own)) for _ in range(nodes))
    fault = Fault(
        draw(st.integers(0, networks - 1)),
        draw(st.integers(0, nodes - 1)),
        draw(st.sampled_from(("sends", "receives", "both", "pair"))),
        draw(st.sampled_from((3.0, 5.0, 10.0, 100.0))),
    )
    noise = draw(st.lists(st.floats(0.96, 1.0), min_size=1, max_size=8))
    return World(names, (1.0,) * networks, fault if faulty else None, tuple(noise))


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_all_nodes_are_led_to_one_network_and_only_where_it_is_clearly_faster(world: World) -> None:
    snapshot = world.snapshot()
    networks = range(len(world.gbit_s))
    proposals = decide(snapshot).proposals
    better = [network for network in networks if world.pace(network) > 2 * world.pace(0)]
    event(f"faster than the first: {len(better)}")
    if better:
        (proposal,) = proposals
        assert proposal.places in [world.places(one) for one in better]
    else:
        assert proposals == ()


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_gloo_is_led_to_one_network_too(world: World) -> None:
    snapshot = world.snapshot()
    reach = some(read_reach(snapshot))
    usable = best_first(
        [find_network for find_network in find_networks(snapshot, reach) if find_network.failure is None]
    )
    all_of_them = [world.places(one) for one in range(len(world.gbit_s))]
    assert sorted((one.places for one in usable), key=str) == sorted(all_of_them, key=str)
    network = advise_gloo(snapshot, reach, usable, None).network
    assert network is None or network.places in all_of_them


@settings(max_examples=100, deadline=None)
@given(worlds(faulty=False))
def test_equal_networks_are_left_as_they_are(world: World) -> None:
    decision = decide(world.snapshot())
    assert decision.proposals == ()
    assert decision.gloo.values == {} or decision.gloo.why.startswith("on ")
