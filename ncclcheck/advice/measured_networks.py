"""Which networks are worth measuring: NCCL's own choice, and those on which all nodes reach each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import read_reach
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import chosen_interface

Places = Mapping[str, tuple[str, str]]  # host -> (interface, address)


def networks_of(snapshot: Snapshot) -> Iterator[Places]:
    """Yield NCCL's choice, then the networks without a failed connection, without those that add no new place.

    NCCL's own network is measured also where some pairs do not connect there: what the others do has to be known, too.
    """
    reach = read_reach(snapshot)
    chosen = _chosen_places(snapshot)
    found: list[Places] = [chosen] if len(chosen) == len(snapshot.nodes) else []
    if not isinstance(reach, Missing):
        found += [network.places for network in find_networks(snapshot, reach) if network.failure is None]
    known: set[tuple[str, tuple[str, str]]] = set()
    for places in found:
        if not known.issuperset(places.items()):
            known.update(places.items())
            yield places


def reached_only(snapshot: Snapshot, hosts: Collection[str]) -> Snapshot:
    """Return the snapshot of these nodes alone, with the connections between them, none of them silent."""
    probes = tuple(
        probe
        for probe in (() if isinstance(snapshot.probes, Missing) else snapshot.probes)
        if probe.from_host in hosts and probe.to_host in hosts
    )
    coverage = snapshot.coverage
    if snapshot.silent and not isinstance(coverage, Missing):
        tried = {(probe.from_host, probe.to_host) for probe in probes if probe.kind == "tcp"}
        coverage = replace(coverage, pairs_planned=len(tried), pairs_possible=len(hosts) * (len(hosts) - 1))
    nodes = tuple(node for node in snapshot.nodes if node.host in hosts)
    return replace(snapshot, nodes=nodes, silent=(), probes=probes, coverage=coverage)


def _chosen_places(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return where NCCL would listen on each host of which that is known."""
    choices = ((node.host, chosen_interface(node.facts)) for node in snapshot.nodes)
    return {host: choice for host, choice in choices if not isinstance(choice, Missing)}
