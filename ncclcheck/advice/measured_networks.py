"""Which networks are worth measuring: those on which all nodes reach each other, NCCL's own choice first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import read_reach
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import chosen_interface

Places = Mapping[str, tuple[str, str]]  # host -> (interface, address)


def networks_of(snapshot: Snapshot) -> Iterator[Places]:
    """Yield the networks without a failed connection, NCCL's choice first, without those that add no new place."""
    reach = read_reach(snapshot)
    if isinstance(reach, Missing):
        return
    found = [network.places for network in find_networks(snapshot, reach) if network.failure is None]
    chosen = _chosen_places(snapshot)
    if len(chosen) == len(snapshot.nodes) and reach.failure(chosen) is None and reach.stall(chosen) is None:
        found.insert(0, chosen)
    known: set[tuple[str, tuple[str, str]]] = set()
    for places in found:
        if not known.issuperset(places.items()):
            known.update(places.items())
            yield places


def _chosen_places(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return where NCCL would listen on each host of which that is known."""
    choices = ((node.host, chosen_interface(node.facts)) for node in snapshot.nodes)
    return {host: choice for host, choice in choices if not isinstance(choice, Missing)}
