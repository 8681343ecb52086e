"""Who reaches whom on the interface NCCL uses, and whom to blame: everybody, a node, two islands, or one pair."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.hosts import named
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.snapshot import Probe, ProbeKind, ProbeOutcome, Snapshot

BLOCKED: tuple[ProbeOutcome, ...] = ("filtered", "no-route", "refused", "stalled")
_WORST_FIRST: tuple[ProbeOutcome, ...] = (*BLOCKED, "answer-lost", "wrong-peer", "self", "error", "ok")
_PAIR = 2
_MANY_PAIRS = 6  # more pairs than this are one finding


BlameKind: TypeAlias = Literal["everyone", "cut-off", "unreachable", "mute", "islands", "pair", "pairs"]


class Blame(Struct, frozen=True):
    """Directions that have one explanation, and the hosts it is on (of islands: the smaller one)."""

    kind: BlameKind
    hosts: tuple[str, ...]
    directions: tuple[Probe, ...]
    others: tuple[str, ...] = ()  # the other island


def directions(snapshot: Snapshot, kind: ProbeKind) -> tuple[Probe, ...]:
    """One probe per ordered pair: the worst of those to the address that NCCL uses on the target."""
    targets = {choice.host: choice.address for choice in chosen(snapshot)}
    worst: dict[tuple[str, str], Probe] = {}
    for probe in _probes(snapshot):
        pair = (probe.from_host, probe.to_host)
        if probe.kind != kind or targets.get(probe.to_host) != probe.address:
            continue
        if pair not in worst or _badness(probe) < _badness(worst[pair]):
            worst[pair] = probe
    return tuple(_explained(worst[pair], worst) for pair in sorted(worst))


def _explained(probe: Probe, probed: Mapping[tuple[str, str], Probe]) -> Probe:
    """Return the probe; a lost answer counts as filtered unless the opposite direction is filtered too."""
    opposite = probed.get((probe.to_host, probe.from_host))
    if probe.outcome == "answer-lost" and (opposite is None or opposite.outcome != "filtered"):
        return replace(probe, outcome="filtered")
    return probe


def elsewhere(snapshot: Snapshot, kind: ProbeKind) -> tuple[Probe, ...]:
    """Return the probes to addresses that NCCL does not use on their targets."""
    targets = {choice.host: choice.address for choice in chosen(snapshot)}
    return tuple(
        probe
        for probe in _probes(snapshot)
        if probe.kind == kind and probe.to_host in targets and targets[probe.to_host] != probe.address
    )


def _probes(snapshot: Snapshot) -> tuple[Probe, ...]:
    return () if isinstance(snapshot.probes, Missing) else snapshot.probes


def _badness(probe: Probe) -> int:
    return _WORST_FIRST.index(probe.outcome)


def one_way(probed: Sequence[Probe]) -> tuple[Probe, ...]:
    """Return the blocked directions whose opposite is open: it connects, or its packets were seen to arrive."""
    open_pairs = {
        (probe.from_host, probe.to_host) for probe in probed if probe.outcome in ("ok", "answer-lost")
    }
    return tuple(
        probe
        for probe in probed
        if probe.outcome in BLOCKED and (probe.to_host, probe.from_host) in open_pairs
    )


def both_ways(probed: Sequence[Probe], outcome: ProbeOutcome) -> tuple[Probe, ...]:
    """Return the directions with that outcome whose opposite is not open either (or was not tried)."""
    single = set(one_way(probed))
    return tuple(probe for probe in probed if probe.outcome == outcome and probe not in single)


def not_probed(snapshot: Snapshot, kind: ProbeKind) -> Iterator[NotKnown]:
    """Why the question whether everybody reaches everybody has no complete answer."""
    yield from not_chosen(snapshot)
    if isinstance(snapshot.probes, Missing):
        yield NotKnown(f"reach: {snapshot.probes}")
        return
    probed = directions(snapshot, kind)
    for probe in probed:
        if probe.outcome in {"error", "self", "wrong-peer"}:
            detail = f": {probe.detail}" if probe.detail else ""
            yield NotKnown(
                f"the {kind} probe to {probe.to_host} has no result ({probe.outcome}{detail})",
                (probe.from_host,),
            )
    yield from _not_covered(snapshot, kind, {(probe.from_host, probe.to_host) for probe in probed})


def _not_covered(
    snapshot: Snapshot, kind: ProbeKind, tried: Collection[tuple[str, str]]
) -> Iterator[NotKnown]:
    hosts = [node.host for node in snapshot.nodes]
    pairs = list(permutations(hosts, 2))
    coverage = snapshot.coverage
    sampled = not isinstance(coverage, Missing) and coverage.pairs_planned < min(
        coverage.pairs_possible, len(pairs)
    )
    if not sampled:
        untried = [pair for pair in pairs if pair not in tried]
        for source in dict.fromkeys(source for source, _ in untried):
            targets = [target for origin, target in untried if origin == source]
            yield NotKnown(f"no {kind} probe to {named(targets)}", (source,))
    elif not isinstance(coverage, Missing) and len(tried) < coverage.pairs_planned:
        yield NotKnown(f"{len(tried)} of {coverage.pairs_planned} planned {kind} directions were probed")


def blame(bad: Sequence[Probe], probed: Sequence[Probe]) -> tuple[Blame, ...]:
    """Return the blocked directions grouped by the fewest explanations, given all directions that were probed.

    All of them: everybody. All from or to one node: that node, once. All between two groups that are whole in
    themselves: islands. What is left is named pair by pair.
    """
    hosts = sorted({host for probe in probed for host in (probe.from_host, probe.to_host)})
    if bad and len(bad) == len(probed) and len(hosts) > _PAIR:
        return (Blame("everyone", tuple(hosts), tuple(bad)),)
    found: list[Blame] = []
    left = list(bad)
    unreachable = {host for host in hosts if _all_bad(host, "to", bad, probed)}
    mute = {host for host in hosts if _all_bad(host, "from", bad, probed)}
    for host in hosts:
        mine = [probe for probe in left if _explains(host, probe, unreachable, mute)]
        if mine:
            kind: BlameKind = "mute"
            if host in unreachable:
                kind = "cut-off" if host in mute else "unreachable"
            found.append(Blame(kind, (host,), tuple(mine)))
            left = [probe for probe in left if probe not in mine]
    found += _islands(left, probed, hosts)
    told = {probe for blamed in found for probe in blamed.directions}
    return (*found, *_pairs([probe for probe in left if probe not in told]))


def _all_bad(host: str, end: Literal["from", "to"], bad: Sequence[Probe], probed: Sequence[Probe]) -> bool:
    def touches(probe: Probe) -> bool:
        return host == (probe.to_host if end == "to" else probe.from_host)

    mine = [probe for probe in probed if touches(probe)]
    return len(mine) > 1 and set(mine) <= set(bad)


def _explains(host: str, probe: Probe, unreachable: Collection[str], mute: Collection[str]) -> bool:
    return (probe.to_host == host and host in unreachable) or (probe.from_host == host and host in mute)


def _islands(left: Sequence[Probe], probed: Sequence[Probe], hosts: Iterable[str]) -> list[Blame]:
    island = _components(hosts, probed)
    between: dict[frozenset[tuple[str, ...]], list[Probe]] = {}
    for probe in left:
        between.setdefault(frozenset((island[probe.from_host], island[probe.to_host])), []).append(probe)
    found = []
    for ends, blocked in between.items():
        crossing = [
            crossing_probe
            for crossing_probe in probed
            if frozenset((island[crossing_probe.from_host], island[crossing_probe.to_host])) == ends
        ]
        if len(ends) > 1 and len(blocked) == len(crossing) and len(_unordered(blocked)) > 1:
            small, large = sorted(ends, key=lambda members: (len(members), members))
            found.append(Blame("islands", small, tuple(blocked), large))
    return found


def _components(hosts: Iterable[str], probed: Sequence[Probe]) -> dict[str, tuple[str, ...]]:
    """Host -> the group of hosts that reach each other, directly or through others of the group."""
    blocked = {frozenset((probe.from_host, probe.to_host)) for probe in probed if probe.outcome != "ok"}
    group = {host: {host} for host in hosts}
    for probe in probed:
        joined = group[probe.from_host] | group[probe.to_host]
        if probe.outcome == "ok" and frozenset((probe.from_host, probe.to_host)) not in blocked:
            for host in joined:
                group[host] = joined
    return {host: tuple(sorted(members)) for host, members in group.items()}


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
