"""How fast a network is between the nodes: the measured transfers to one interface per node, summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median

from msgspec import Struct

from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.measure.statistics import nearest_rank
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.snapshot import Probe, ProbeKind

CPU_LIMITED_SHARE = 0.85  # a thread that was busy for this part of the window had little to wait for
FASTER = 1.3  # so many times faster is a difference that is worth a setting
_NETWORKS = 16  # whose probes are remembered
_LOW_PERCENT, _HIGH_PERCENT = 10, 90

Places = Mapping[str, tuple[str, str]]  # host -> (interface, address)


class Throughput(Struct, frozen=True):
    """TCP payload between the nodes of a network, in Gbit/s, over all transfers to its addresses.

    `low` and `high` are the 10th and 90th percentile (of up to ten transfers: the slowest and the fastest). Where
    `cpu_limited`, the network may be faster than that: the nodes themselves could not do more.
    """

    median: float
    low: float
    high: float
    transfers: int
    cpu_limited: bool

    def is_slower_than(self, throughput: Throughput) -> bool:
        """Return whether the other is at least 1.3 times as fast, and no usual transfer of this one as fast as there.

        Never true where the CPU limited this one: it may be as fast as the other.
        """
        apart = self.high < throughput.low
        return not self.cpu_limited and apart and throughput.median >= FASTER * self.median


class RoundTrip(Struct, frozen=True):
    """The round trip of a small message over TCP in us, over all pairs: each counts with its own median."""

    median_us: float
    least_us: float
    most_us: float
    pairs: int


def measured_gbit_s(probes: Fact[Sequence[Probe]], places: Places) -> Fact[Throughput]:
    """Return the bandwidth of the network that has these places.

    Missing where it was not measured, or no transfer to one of its places, or none from one of its hosts, succeeded.
    """
    found = transfers(probes, places, "bandwidth")
    return found if isinstance(found, Missing) else summed_up(found)


def measured_gbit_s_to(probes: Fact[Sequence[Probe]], places: Places) -> dict[str, Throughput]:
    """Return the bandwidth to each place of the network on its own, by its host.

    Empty where the whole was not measured.
    """
    found = transfers(probes, places, "bandwidth")
    return {} if isinstance(found, Missing) else summed_up_to(found, places)


def summed_up_to(found: Sequence[tuple[Probe, float]], places: Places) -> dict[str, Throughput]:
    """Return these transfers as one figure for the host of each place that they went to."""
    to_host: dict[str, list[tuple[Probe, float]]] = {}
    for probe, value in found:
        to_host.setdefault(probe.to_host, []).append((probe, value))
    return {host: summed_up(to_host.get(host, [])) for host in places}


def summed_up(found: Sequence[tuple[Probe, float]]) -> Throughput:
    """Return these transfers, each with its value in Gbit/s, as one figure."""
    values = sorted(value for _, value in found)
    limited = sum(is_cpu_limited(probe) for probe, _ in found)
    return Throughput(
        median=median(values),
        low=nearest_rank(values, _LOW_PERCENT),
        high=nearest_rank(values, _HIGH_PERCENT),
        transfers=len(values),
        cpu_limited=2 * limited >= len(values),
    )


def measured_round_trip(probes: Fact[Sequence[Probe]], places: Places) -> Fact[RoundTrip]:
    """Return the latency of the network that has these places; Missing as for `measured_gbit_s`."""
    found = transfers(probes, places, "latency")
    if isinstance(found, Missing):
        return found
    values = [value for _, value in found]
    return RoundTrip(median(values), min(values), max(values), len(values))


def transfers(
    probes: Fact[Sequence[Probe]], places: Places, kind: ProbeKind
) -> Fact[tuple[tuple[Probe, float], ...]]:
    """Return the measurements of that kind between the hosts and to those places that succeeded, each with its value.

    Missing where they do not tell something of every place: as the target of one, and its host as the source of one.
    """
    if isinstance(probes, Missing):
        return probes
    found = tuple((probe, probe.value) for probe in attempts(probes, places, kind) if probe.value is not None)
    heard = {probe.to_host for probe, _ in found} & {probe.from_host for probe, _ in found}
    silent = set(places) - heard
    if not found:
        return Missing("absent", f"no {kind} was measured there")
    if silent:
        return Missing("error", f"no {kind} was measured from and to {', '.join(sorted(silent)[:4])}")
    return found


def measured_networks(probes: Fact[Sequence[Probe]], hosts: Sequence[str]) -> tuple[Places, ...]:
    """Return the networks whose bandwidth was measured, in that order; a network has one interface of each node.

    All transfers of one network come before those of the next. Where networks share the interface of a node, only those
    are distinguished whose interface has one name on all nodes.
    """
    found: dict[str, dict[tuple[str, str], None]] = {host: {} for host in hosts}
    for probe in of_kind(probes, "bandwidth"):
        if probe.to_host in found:
            found[probe.to_host].setdefault((probe.interface, probe.address))
    counts = {len(places) for places in found.values()}
    if len(counts) == 1:
        return tuple(
            dict(zip(hosts, row, strict=True)) for row in zip(*(found[host] for host in hosts), strict=True)
        )
    by_name = {host: {place[0]: place for place in reversed(places)} for host, places in found.items()}
    names = [name for name, _ in found[hosts[0]] if all(name in places for places in by_name.values())]
    return tuple({host: by_name[host][name] for host in hosts} for name in dict.fromkeys(names))


def attempts(probes: Sequence[Probe], places: Places, kind: ProbeKind) -> tuple[Probe, ...]:
    """Return all measurements of that kind between the hosts and to those places, also those that failed."""
    if not isinstance(probes, tuple):  # a list may change
        return _attempts(of_kind(probes, kind), places)
    return _of_places(SameObject(probes), kind, frozenset(places.items()))


@lru_cache(maxsize=_NETWORKS)
def _of_places(
    probes: SameObject[tuple[Probe, ...]], kind: ProbeKind, places: frozenset[tuple[str, tuple[str, str]]]
) -> tuple[Probe, ...]:
    return _attempts(of_kind(probes.value, kind), dict(places))


def _attempts(probes: Sequence[Probe], places: Places) -> tuple[Probe, ...]:
    return tuple(
        [
            probe
            for probe in probes
            if probe.from_host in places and places.get(probe.to_host) == (probe.interface, probe.address)
        ]
    )


def is_cpu_limited(probe: Probe) -> bool:
    """Return whether the CPU of one of the two nodes, and not the path between them, set the value."""
    share = probe.measured.cpu_share if probe.measured else None
    return isinstance(share, float) and share >= CPU_LIMITED_SHARE


def least_us(probe: Probe) -> float:
    """Return the quickest round trip of a latency probe that succeeded; its median where that is not known."""
    least = probe.measured.least if probe.measured else None
    return (probe.value or 0.0) if least is None else least


def network_us(probe: Probe) -> float:
    """Return the quickest round trip of the network alone, as the kernel saw it; else that of the processes."""
    kernel_us = probe.measured.kernel_us if probe.measured else None
    return min(kernel_us, least_us(probe)) if isinstance(kernel_us, float) else least_us(probe)
