"""The networks all nodes could use: one interface per node, and how good it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from statistics import median
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.advice.reach import Reach
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.measure.links.network_rates import Throughput, summed_up, summed_up_to, transfers
from ncclcheck.measure.links.slow_parts import SlowestPart, slowest_part
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.formats import addresses
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.candidates import candidate_interfaces
from ncclcheck.nccl.prediction import MOST_NODES

Subnet: TypeAlias = tuple[
    str, int, int
]  # family, first and last address: quicker to compare than ipaddress's own


class Rank(Struct, frozen=True, order=True):
    """Less is better: hardware before virtual ones, then the slowest node's speed, unknown last."""

    is_virtual: bool
    negative_speed_mbps: int


class Network(Struct, frozen=True):
    """One (interface, address) per host. `failure` says which connection did not succeed; None: all did.

    `throughput` is what was measured between the hosts there, `throughput_to` the same for each host's place alone,
    `slowest` the part of it that is called slow, if one is.
    """

    places: dict[str, tuple[str, str]]
    rank: Rank
    failure: str | None
    throughput: Fact[Throughput] = Missing("absent", "its bandwidth was not measured")
    throughput_to: dict[str, Throughput] = {}
    slowest: SlowestPart | None = None

    @property
    def name(self) -> str:
        """Its interface, or interfaces where the nodes name it differently."""
        return "/".join(dict.fromkeys(interface for interface, _ in self.places.values()))

    @property
    def link_mbps(self) -> int:
        """The link speed of its slowest node; 0 where one is not known."""
        return -self.rank.negative_speed_mbps


def find_networks(snapshot: Snapshot, reach: Reach) -> tuple[Network, ...]:
    """Every network that has an interface on each node: the reachable ones first, then by the links' speed.

    A mixture of networks, such as one node's eth0 with the eth1 of the others, is none, where one that works is none.
    """
    if not snapshot.nodes:  # nobody answered
        return ()
    found: dict[frozenset[tuple[str, tuple[str, str]]], Network] = {}

    def find(places: dict[str, tuple[str, str]]) -> None:
        key = frozenset(places.items())
        if key not in found:
            found[key] = network_of(snapshot, reach, places)

    for places in (*_by_name(snapshot), *_by_subnet(snapshot)):
        find(places)
    unmixed = [
        network
        for network in found.values()
        if network.failure is None and not _joins_parallel(snapshot, network)
    ]
    for places in _by_reach(snapshot, reach):
        if not any(_is_partly(places, network.places) for network in unmixed):
            find(places)
    usable = [
        network
        for network in found.values()
        if not unmixed or network.failure is not None or not _joins_parallel(snapshot, network)
    ]
    # sorted() is stable: a name that all nodes share, in the kernel's order on the first node, wins a tie
    return tuple(sorted(usable, key=lambda network: (network.failure is not None, network.rank)))


def _joins_parallel(snapshot: Snapshot, network: Network) -> bool:
    """Return True if it takes one node's address of one subnet, another node's of another, and a node has both."""
    used = {_subnet(node.facts, network.places[node.host][1]) for node in snapshot.nodes} - {None}
    return len(used) > 1 and any(
        len(used & {_subnet(node.facts, address) for _, address in _candidates(node.facts)}) > 1
        for node in snapshot.nodes
    )


def _is_partly(places: Mapping[str, tuple[str, str]], whole: Mapping[str, tuple[str, str]]) -> bool:
    """Return True if both networks share the places of some nodes, and not of all."""
    return 0 < len(places.items() & whole.items()) < len(whole)


def network_of(snapshot: Snapshot, reach: Reach, places: dict[str, tuple[str, str]]) -> Network:
    """Return the measurements of these places as one network."""
    return _network(snapshot, SameObject(reach), frozenset(places.items()))


@once_per_subject
def _network(
    snapshot: Snapshot, known: SameObject[Reach], hosts: frozenset[tuple[str, tuple[str, str]]]
) -> Network:
    of_host = dict(hosts)
    places = {node.host: of_host[node.host] for node in snapshot.nodes}
    reach = known.value
    rank, failure = rank_of(snapshot, places), _failure(reach, places)
    found = transfers(snapshot.probes, places, "bandwidth")
    if isinstance(found, Missing):
        return Network(places, rank, failure, found)
    slowest = slowest_part([probe for probe, _ in found])
    return Network(places, rank, failure, summed_up(found), summed_up_to(found, places), slowest)


def rank_of(snapshot: Snapshot, places: dict[str, tuple[str, str]]) -> Rank:
    """How good a network is by its worst node."""
    interfaces = [_interface(node.facts, places[node.host][0]) for node in snapshot.nodes]
    known = [interface for interface in interfaces if interface is not None]
    speeds = [0 if isinstance(interface.speed_mbps, Missing) else interface.speed_mbps for interface in known]
    is_virtual = len(known) < len(interfaces) or any(not interface.is_hardware for interface in known)
    return Rank(is_virtual, -min(speeds, default=0))


def _interface(facts: NodeFacts, name: str) -> Interface | None:
    if isinstance(facts.interfaces, Missing):
        return None
    return next((interface for interface in facts.interfaces if interface.name == name), None)


def _failure(reach: Reach, places: dict[str, tuple[str, str]]) -> str | None:
    failure = reach.failure(places)
    return failure.text if failure is not None else reach.stall(places)


def _candidates(facts: NodeFacts) -> tuple[tuple[str, str], ...]:
    """Return the candidates in the kernel's order."""
    return _in_order(SameObject(facts))


@lru_cache(maxsize=MOST_NODES)
def _in_order(node: SameObject[NodeFacts]) -> tuple[tuple[str, str], ...]:
    facts = node.value
    if isinstance(facts.interfaces, Missing):
        return ()
    order = {interface.name: position for position, interface in enumerate(facts.interfaces)}
    return tuple(sorted(candidate_interfaces(facts), key=lambda pair: order[pair[0]]))


def _by_name(snapshot: Snapshot) -> Iterator[dict[str, tuple[str, str]]]:
    by_host = {node.host: {pair[0]: pair for pair in _candidates(node.facts)} for node in snapshot.nodes}
    for name, _ in _candidates(snapshot.nodes[0].facts):
        if all(name in pairs for pairs in by_host.values()):
            yield {host: pairs[name] for host, pairs in by_host.items()}


def _by_subnet(snapshot: Snapshot) -> Iterator[dict[str, tuple[str, str]]]:
    for _, candidate in _candidates(snapshot.nodes[0].facts):
        subnet = _subnet(snapshot.nodes[0].facts, candidate)
        places = {
            node.host: pair
            for node in snapshot.nodes
            for pair in reversed(_candidates(node.facts))
            if subnet is not None and _subnet(node.facts, pair[1]) == subnet
        }
        if len(places) == len(snapshot.nodes):
            yield places


def _subnet(facts: NodeFacts, address: str) -> Subnet | None:
    return _subnets(SameObject(facts)).get(address)


@lru_cache(maxsize=MOST_NODES)
def _subnets(node: SameObject[NodeFacts]) -> dict[str, Subnet | None]:
    """Return the subnet of each address of a node; None where it has none."""
    interfaces = () if isinstance(node.value.interfaces, Missing) else node.value.interfaces
    found: dict[str, Subnet | None] = {}
    for interface in interfaces:
        for entry in interface.addresses:
            address = entry.address.partition("%")[0]
            if address not in found:
                found[address] = _subnet_of(address, entry.prefix_length)
    return found


def _subnet_of(address: str, prefix_length: int) -> Subnet | None:
    try:
        return addresses.range_of(address, prefix_length)
    except ValueError:  # facts of another node can hold anything
        return None


def _by_reach(snapshot: Snapshot, reach: Reach) -> Iterator[dict[str, tuple[str, str]]]:
    """Each node's best interface that all the others reached, whatever its name and subnet: routed networks.

    The best by its link, and the best by what was measured to it.
    """
    called = {target for _, target in reach.pairs}
    incoming = _incoming(snapshot)
    by_link: dict[str, tuple[str, str]] = {}
    by_measure: dict[str, tuple[str, str]] = {}
    for node in snapshot.nodes:
        reached = [
            (interface, address)
            for interface, address in _candidates(node.facts)
            if node.host not in called or (node.host, address) in reach.reached
        ]
        if not reached:
            return
        if len(reached) == 1:  # as on most nodes
            by_link[node.host] = by_measure[node.host] = reached[0]
            continue
        alone = Snapshot(nodes=(node,))
        measured = incoming.get(node.host, {})
        by_link[node.host] = min(reached, key=lambda pair: rank_of(alone, {node.host: pair}))
        by_measure[node.host] = max(reached, key=lambda pair: measured.get(pair[1], 0.0))
    yield by_link
    if any(incoming.get(node.host) for node in snapshot.nodes):
        yield by_measure


def _incoming(snapshot: Snapshot) -> dict[str, dict[str, float]]:
    """Return the median of what was measured to each address of each host, in Gbit/s."""
    values: dict[str, dict[str, list[float]]] = {}
    for probe in () if isinstance(snapshot.probes, Missing) else snapshot.probes:
        if probe.kind == "bandwidth" and probe.value is not None:
            values.setdefault(probe.to_host, {}).setdefault(probe.address, []).append(probe.value)
    return {
        host: {address: median(found) for address, found in of_host.items()}
        for host, of_host in values.items()
    }
