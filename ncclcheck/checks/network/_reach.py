"""Which nodes reach each other on the interface NCCL uses, and the cause: all nodes, one, two islands, or a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.hosts import named
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.measure.links.schedule import ALL_PAIRS_UP_TO
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.snapshot import Probe, ProbeKind, ProbeOutcome, Snapshot

BLOCKED: tuple[ProbeOutcome, ...] = ("filtered", "no-route", "refused", "stalled")
_WORST_FIRST: tuple[ProbeOutcome, ...] = (*BLOCKED, "answer-lost", "wrong-peer", "self", "error", "ok")
_PAIR = 2
_RUNS = 8  # of which the failed probes are remembered
_MANY_PAIRS = 6  # more pairs than this are one finding


BlameKind: TypeAlias = Literal["everyone", "cut-off", "unreachable", "mute", "islands", "pair", "pairs"]


class Blame(Struct, frozen=True):
    """Directions that have one explanation, and the hosts it is on (of islands: the smaller one)."""

    kind: BlameKind
    hosts: tuple[str, ...]
    directions: tuple[Probe, ...]
    others: tuple[str, ...] = ()  # the other island


@once_per_subject
def directions(snapshot: Snapshot, kind: ProbeKind) -> tuple[Probe, ...]:
    """One probe per ordered pair: the worst of those to the address that NCCL uses on the target."""
    targets = {choice.host: choice.address for choice in chosen(snapshot)}
    ended = {silent.host for silent in snapshot.silent if silent.phase == "probes"}
    worst: dict[tuple[str, str], Probe] = {}
    for probed in of_kind(snapshot.probes, kind):
        to_host = probed.to_host
        if targets.get(to_host) != probed.address:
            continue
        probe = _to_the_ended(probed) if to_host in ended else probed
        pair = (probe.from_host, to_host)
        known = worst.setdefault(pair, probe)
        if known is not probe and _badness(probe) < _badness(known):
            worst[pair] = probe
    routeless = without_route(snapshot)
    return tuple([_explained(worst[pair], worst, routeless) for pair in sorted(worst)])


@once_per_subject
def without_route(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Return (host, peer) where the kernel of the host has no route to an address of the peer."""
    return frozenset(
        (node.host, route.purpose)
        for node, routes in snapshot.known("routes")
        for route in routes
        if isinstance(route.source_address, Missing) and route.source_address.missing == "absent"
    )


def _to_the_ended(probe: Probe) -> Probe:
    """Return the probe of a node that fell silent meanwhile: refused as its process had ended, it proves nothing."""
    if probe.outcome != "refused":
        return probe
    return replace(probe, outcome="error", detail="the node fell silent during the probes")


def _explained(
    probe: Probe, probed: Mapping[tuple[str, str], Probe], routeless: Collection[tuple[str, str]]
) -> Probe:
    """Return the probe; a lost answer counts as filtered unless the opposite direction is filtered too.

    A node without a route cannot answer either: what gets no answer for that is no firewall's.
    """
    if probe.outcome in ("filtered", "answer-lost") and (probe.to_host, probe.from_host) in routeless:
        opposite = probed.get((probe.to_host, probe.from_host))
        if opposite is not None and opposite.outcome == "no-route":
            detail = f"{probe.detail}; {probe.to_host} has no route for its answers"
            return replace(probe, outcome="no-route", detail=detail)
    if probe.outcome != "answer-lost":
        return probe
    opposite = probed.get((probe.to_host, probe.from_host))
    is_filtered = opposite is not None and opposite.outcome == "filtered"
    return probe if is_filtered else replace(probe, outcome="filtered")


@once_per_subject
def elsewhere(snapshot: Snapshot, kind: ProbeKind) -> tuple[Probe, ...]:
    """Return the probes to addresses that NCCL does not use on their targets."""
    targets = {choice.host: choice.address for choice in chosen(snapshot)}
    return tuple(
        probe
        for probe in of_kind(snapshot.probes, kind)
        if probe.to_host in targets and targets[probe.to_host] != probe.address
    )


def _badness(probe: Probe) -> int:
    return _WORST_FIRST.index(probe.outcome)


def one_way(probed: Sequence[Probe]) -> tuple[Probe, ...]:
    """Return the blocked directions whose opposite is open: it connects, or its packets were seen to arrive."""
    blocked = [probe for probe in failed(probed) if probe.outcome in BLOCKED]
    opposite = {(probe.to_host, probe.from_host) for probe in blocked}
    open_pairs = (
        {
            pair
            for probe in probed
            if (pair := (probe.from_host, probe.to_host)) in opposite
            and probe.outcome in ("ok", "answer-lost")
        }
        if opposite
        else set()
    )
    return tuple(probe for probe in blocked if (probe.to_host, probe.from_host) in open_pairs)


def both_ways(probed: Sequence[Probe], outcome: ProbeOutcome) -> tuple[Probe, ...]:
    """Return the directions with that outcome whose opposite is not open either (or was not tried)."""
    single = {_host_pair(probe) for probe in one_way(probed)}
    asked = probed if outcome == "ok" else failed(probed)
    return tuple(probe for probe in asked if probe.outcome == outcome and _host_pair(probe) not in single)


def failed(probed: Sequence[Probe]) -> Sequence[Probe]:
    """Return those that did not connect: mostly none of tens of thousands, and several checks look for them."""
    if not isinstance(probed, tuple):  # a list may change
        return [probe for probe in probed if probe.outcome != "ok"]
    return _failed_of(SameObject(probed))


@lru_cache(maxsize=_RUNS)
def _failed_of(probed: SameObject[tuple[Probe, ...]]) -> tuple[Probe, ...]:
    return tuple([probe for probe in probed.value if probe.outcome != "ok"])


@lru_cache(maxsize=_RUNS)
def _hosts_of(probed: SameObject[tuple[Probe, ...]]) -> tuple[str, ...]:
    """Return the hosts of the probes, sorted. Several checks ask for them."""
    return tuple(sorted({host for probe in probed.value for host in (probe.from_host, probe.to_host)}))


def _host_pair(probe: Probe) -> tuple[str, str]:
    return probe.from_host, probe.to_host


def not_probed(snapshot: Snapshot, kind: ProbeKind) -> Iterator[NotKnown]:
    """Why the question whether everybody reaches everybody has no complete answer."""
    yield from not_chosen(snapshot)
    if isinstance(snapshot.probes, Missing):
        yield NotKnown(f"reach: {snapshot.probes}")
        return
    probed = directions(snapshot, kind)
    for probe in failed(probed):
        if probe.outcome in {"error", "self", "wrong-peer"}:
            detail = f": {probe.detail}" if probe.detail else ""
            yield NotKnown(
                f"the {kind} probe to {probe.to_host} has no result ({probe.outcome}{detail})",
                (probe.from_host,),
            )
    yield from _not_covered(snapshot, kind, probed)


def _not_covered(snapshot: Snapshot, kind: ProbeKind, probed: Sequence[Probe]) -> Iterator[NotKnown]:
    hosts = [node.host for node in snapshot.nodes]
    possible = len(hosts) * (len(hosts) - 1)
    coverage = snapshot.coverage
    planned = possible if isinstance(coverage, Missing) else coverage.pairs_planned
    if not isinstance(coverage, Missing) and planned < min(coverage.pairs_possible, possible):
        if len(probed) < planned:
            yield NotKnown(f"{len(probed)} of {planned} planned {kind} directions were probed")
        return
    if len(hosts) > ALL_PAIRS_UP_TO:  # the pairs would be too many to list
        if len(probed) < possible:
            yield NotKnown(f"{len(probed)} of {possible} {kind} directions were probed")
        return
    tried = {_host_pair(probe) for probe in probed}
    for source in hosts:
        targets = [target for target in hosts if target != source and (source, target) not in tried]
        if targets:
            yield NotKnown(f"no {kind} probe to {named(targets)}", (source,))


def blame(bad: Sequence[Probe], probed: Sequence[Probe]) -> tuple[Blame, ...]:
    """Return the blocked directions grouped by the fewest explanations, given all directions that were probed.

    All of them: everybody. All from or to one node: that node, once. All between two groups that are whole in
    themselves: islands. What is left is named pair by pair.
    """
    if not bad:
        return ()
    hosts = _hosts_of(SameObject(tuple(probed)))
    if len(bad) == len(probed) and len(hosts) > _PAIR:
        return (Blame("everyone", hosts, tuple(bad)),)
    found: list[Blame] = []
    left = {_host_pair(probe): probe for probe in bad}
    of_host: dict[str, list[tuple[str, str]]] = {}
    for pair in left:
        for host in pair:
            of_host.setdefault(host, []).append(pair)
    unreachable, mute = _all_bad("to", bad, probed), _all_bad("from", bad, probed)
    for host in sorted(unreachable | mute):
        mine = [pair for pair in of_host[host] if pair in left and _explains(host, pair, unreachable, mute)]
        if mine:
            kind: BlameKind = "mute"
            if host in unreachable:
                kind = "cut-off" if host in mute else "unreachable"
            found.append(Blame(kind, (host,), tuple(left.pop(pair) for pair in mine)))
    found += _islands(tuple(left.values()), probed, hosts) if left else ()
    blamed_pairs = {_host_pair(probe) for blamed in found for probe in blamed.directions}
    return (*found, *_pairs([probe for pair, probe in left.items() if pair not in blamed_pairs]))


def _all_bad(end: Literal["from", "to"], bad: Sequence[Probe], probed: Sequence[Probe]) -> set[str]:
    """Return the hosts of which all directions from or to them are bad, of more than one."""
    at = attrgetter(f"{end}_host")
    bad_of = Counter(map(at, bad))
    probed_of = Counter(map(at, probed)) if bad_of else bad_of
    return {host for host, count in bad_of.items() if count == probed_of[host] > 1}


def _explains(host: str, pair: tuple[str, str], unreachable: Collection[str], mute: Collection[str]) -> bool:
    return (pair[1] == host and host in unreachable) or (pair[0] == host and host in mute)


def _islands(left: Sequence[Probe], probed: Sequence[Probe], hosts: Iterable[str]) -> list[Blame]:
    island = _components(hosts, probed)

    def ends_of(probe: Probe) -> frozenset[str]:
        return frozenset((island[probe.from_host], island[probe.to_host]))

    between: dict[frozenset[str], list[Probe]] = {}
    for probe in left:
        between.setdefault(ends_of(probe), []).append(probe)
    crossing = Counter(ends_of(probe) for probe in probed if island[probe.from_host] != island[probe.to_host])
    members: dict[str, list[str]] = {}
    for host in sorted(island):
        members.setdefault(island[host], []).append(host)
    found = []
    for ends, blocked in between.items():
        if len(ends) > 1 and len(blocked) == crossing[ends] and len(_unordered(blocked)) > 1:
            small, large = sorted(
                (tuple(members[end]) for end in ends), key=lambda group: (len(group), group)
            )
            found.append(Blame("islands", small, tuple(blocked), large))
    return found


def _components(hosts: Iterable[str], probed: Sequence[Probe]) -> dict[str, str]:
    """Return one host for each host, the same for all that reach each other, directly or through others."""
    blocked = {
        pair for probe in failed(probed) for pair in (_host_pair(probe), (probe.to_host, probe.from_host))
    }
    above = {host: host for host in hosts}

    def top(host: str) -> str:
        while above[host] != host:
            above[host] = above[above[host]]
            host = above[host]
        return host

    for probe in probed:
        if probe.outcome == "ok" and _host_pair(probe) not in blocked:
            above[top(probe.from_host)] = top(probe.to_host)
    return {host: top(host) for host in above}


def _pairs(left: Sequence[Probe]) -> list[Blame]:
    pairs = _unordered(left)
    if len(pairs) > _MANY_PAIRS:
        hosts = dict.fromkeys(host for probe in left for host in (probe.from_host, probe.to_host))
        return [Blame("pairs", tuple(hosts), tuple(left))]
    return [Blame("pair", (pair[0].from_host, pair[0].to_host), tuple(pair)) for pair in pairs.values()]


def _unordered(probes: Iterable[Probe]) -> dict[frozenset[str], list[Probe]]:
    pairs: dict[frozenset[str], list[Probe]] = {}
    for probe in probes:
        pairs.setdefault(frozenset((probe.from_host, probe.to_host)), []).append(probe)
    return pairs
