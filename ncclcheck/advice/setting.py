"""The smallest change of the environment that makes NCCL use a reachable network on every node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from ncclcheck.advice.networks import Network, network_of
from ncclcheck.advice.reach import Reach
from ncclcheck.advice.speed import is_as_good
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname
from ncclcheck.nccl.prediction import effective_environment, predict_interface

IFNAME = "NCCL_SOCKET_IFNAME"
_OVERRIDING = ("NCCL_COMM_ID", "NCCL_SOCKET_FAMILY")  # these decide beside, or instead of, the names
_NEVER_EMPTY = ("NCCL_COMM_ID", "NCCL_NET")

Changes: TypeAlias = dict[str, dict[str, str | None]]  # host -> variable -> value; None: unset
ChosenPlaces: TypeAlias = dict[str, tuple[str, str]]


def smallest_change(
    snapshot: Snapshot, reach: Reach, networks: Sequence[Network]
) -> tuple[Changes, ChosenPlaces] | None:
    """Return the change, and what every node then chooses by our model; None where no change achieves it.

    Taking away comes first, if the default is then as good as the best of `networks` (reachable ones, the best first).
    Then the name of an interface; then names that are right on every node; last a value per host that needs one.
    """
    taken_away = [
        (changes, network_of(snapshot, reach, places))
        for removal in _removals(snapshot, (IFNAME, *_OVERRIDING))
        if removal and (places := choices_under(snapshot, changes := everywhere(snapshot, removal)))
    ]
    for changes, network in taken_away:
        if network.failure is None and is_as_good(network, networks[0]):
            return changes, network.places
    for target in networks:
        for changes, network in taken_away:
            if network.places == target.places:
                return changes, network.places
        for changes in _named(snapshot, target):
            if choices_under(snapshot, changes) == target.places:
                return changes, target.places
    return None


def _named(snapshot: Snapshot, network: Network) -> Iterator[Changes]:
    """Yield the network's names, alone and together with unsetting what overrides names."""
    for removal in _removals(snapshot, _OVERRIDING):
        for values in _values(snapshot, network, removal):
            yield {host: {**removal, **value} for host, value in values.items()}


def choices_under(snapshot: Snapshot, changes: Mapping[str, Mapping[str, str | None]]) -> ChosenPlaces | None:
    """(interface, address) that our model says every node then chooses; None where it fails or is not known."""
    places = {node.host: predict_interface(node.facts, changes.get(node.host, {})) for node in snapshot.nodes}
    chosen = {host: place for host, place in places.items() if not isinstance(place, Missing)}
    return chosen if len(chosen) == len(places) else None


def removal_of(snapshot: Snapshot, name: str) -> str | None:
    """How the variable is taken away: unset (None), or, where a config file of a node sets it, set empty.

    A name that the environment holds is not taken from a file (NCCL src/misc/param.cc, initEnv), and an empty value
    counts as unset. But an empty NCCL_COMM_ID is an error (src/bootstrap.cc), and an empty NCCL_NET fits no network
    (src/init.cc).
    """
    if name in _NEVER_EMPTY:
        return None
    for node in snapshot.nodes:
        effective = effective_environment(node.facts, {name: None})
        if not isinstance(effective, Missing) and name in effective:
            return ""
    return None


def everywhere(snapshot: Snapshot, change: Mapping[str, str | None]) -> Changes:
    """Return the same change on every node."""
    return {node.host: dict(change) for node in snapshot.nodes}


def _removals(snapshot: Snapshot, names: Sequence[str]) -> Iterator[dict[str, str | None]]:
    """Every way to take away some of the variables that are set anywhere, the smallest first; at first none."""
    present = [
        name
        for name in names
        if any(
            not isinstance(effective, Missing) and name in effective
            for effective in (effective_environment(node.facts) for node in snapshot.nodes)
        )
    ]
    for size in range(len(present) + 1):
        for chosen in combinations(present, size):
            yield {name: removal_of(snapshot, name) for name in chosen}


def _values(
    snapshot: Snapshot, network: Network, removal: Mapping[str, str | None]
) -> Iterator[dict[str, dict[str, str | None]]]:
    """Yield the values to try per host, the smallest first; the model decides whether they are right."""
    names = list(dict.fromkeys(interface for interface, _ in network.places.values()))
    plain = ",".join(names)
    forms = (f"={plain}", plain) if _matches_others(snapshot, network, plain) else (plain, f"={plain}")
    for value in forms if len(names) <= ifname.MAX_ENTRIES else ():
        yield {host: {IFNAME: value} for host in network.places}
    if len(names) > 1:
        unaided = [
            node.host
            for node in snapshot.nodes
            if predict_interface(node.facts, removal) == network.places[node.host]
        ]
        yield {
            host: {} if host in unaided else {IFNAME: f"={interface}"}
            for host, (interface, _) in network.places.items()
        }


def _matches_others(snapshot: Snapshot, network: Network, value: str) -> bool:
    """Return True if the names, read as prefixes, also match an interface that is not meant on some node."""
    pattern = ifname.parse(value)
    return any(
        pattern.matches(interface.name) and interface.name != network.places[node.host][0]
        for node, interfaces in snapshot.known("interfaces")
        for interface in interfaces
    )
