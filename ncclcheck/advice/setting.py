"""The smallest change of the environment that makes NCCL use a reachable network on every node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from ncclcheck.advice.networks import Network, rank_of
from ncclcheck.advice.reach import Reach
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname
from ncclcheck.nccl.prediction import predict

IFNAME = "NCCL_SOCKET_IFNAME"
_OVERRIDING = ("NCCL_COMM_ID", "NCCL_SOCKET_FAMILY")  # these decide beside, or instead of, the names

Changes: TypeAlias = dict[str, dict[str, str | None]]  # host -> variable -> value; None: unset
ChosenPlaces: TypeAlias = dict[str, tuple[str, str]]


def smallest_change(
    snapshot: Snapshot, reach: Reach, networks: Sequence[Network]
) -> tuple[Changes, ChosenPlaces] | None:
    """The change, and what every node then chooses by our model; None where no change does it.

    Unsetting comes first, if the default is then as good as the best of `networks` (reachable ones, the best first).
    Then the name of an interface; then names that are right on every node; last a value per host.
    """
    for removed in _subsets(_present(snapshot, (IFNAME, *_OVERRIDING))):
        changes = _everywhere(snapshot, dict.fromkeys(removed)) if removed else {}
        places = choices_under(snapshot, changes) if removed else None
        if places and reach.failure(places) is None and rank_of(snapshot, places) <= networks[0].rank:
            return changes, places
    for network in networks:
        for removed in _subsets(_present(snapshot, _OVERRIDING)):
            for values in _values(snapshot, network):
                changes = {host: {**dict.fromkeys(removed), IFNAME: value} for host, value in values.items()}
                places = choices_under(snapshot, changes)
                if places == network.places:
                    return changes, places
    return None


def choices_under(snapshot: Snapshot, changes: Mapping[str, Mapping[str, str | None]]) -> ChosenPlaces | None:
    """(interface, address) that our model says every node then chooses; None where it fails or is not known."""
    places = {}
    for node in snapshot.nodes:
        predicted = predict(node.facts, changes=changes.get(node.host, {}))
        if isinstance(predicted, Missing) or predicted.interface is None or predicted.address is None:
            return None
        places[node.host] = predicted.interface, predicted.address
    return places


def _present(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    return [
        name for name in names if any(name in environment for _, environment in snapshot.known("environment"))
    ]


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def _everywhere(snapshot: Snapshot, change: dict[str, str | None]) -> Changes:
    return {node.host: dict(change) for node in snapshot.nodes}


def _values(snapshot: Snapshot, network: Network) -> Iterator[dict[str, str]]:
    """Values of NCCL_SOCKET_IFNAME per host to try, the smallest first; whether they are right is for the model."""
    names = list(dict.fromkeys(interface for interface, _ in network.places.values()))
    plain = ",".join(names)
    forms = (f"={plain}", plain) if _matches_others(snapshot, network, plain) else (plain, f"={plain}")
    for value in forms if len(names) <= ifname.MAX_ENTRIES else ():
        yield dict.fromkeys(network.places, value)
    if len(names) > 1:
        yield {host: f"={interface}" for host, (interface, _) in network.places.items()}


def _matches_others(snapshot: Snapshot, network: Network, value: str) -> bool:
    """True if the names, taken as prefixes, cover an interface that is not meant on some node."""
    pattern = ifname.parse(value)
    return any(
        pattern.matches(interface.name) and interface.name != network.places[node.host][0]
        for node, interfaces in snapshot.known("interfaces")
        for interface in interfaces
    )
