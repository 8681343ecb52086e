"""Which node or pair loses packets: what looks like it is tried with many small round trips before it is called so.

Full queues lose packets on a healthy network, so what a transfer sends again is a suspicion only. Small round trips
fill no queue: a packet lost there was lost on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.links.network_rates import Places, attempts
from ncclcheck.measure.links.outliers import FEWEST_NODES, End, Pair
from ncclcheck.measure.links.repeats import Transfer
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Measured, Probe

MOST_PASSES = 3
_SUSPICIOUS_RESENT, _SUSPICIOUS_SHARE = 2, 0.0005  # of a transfer's packets
_FEWEST_LOST, _LEAST_SHARE = 4, 0.001  # of the small packets, to say that they get lost
_ENOUGH_LOST = 8  # to say which share
_MOST_PAIRS_LOSSY = 2 / 3  # of the pairs of an end, to call it the end
_NEXT_TO_NOTHING = 0.1  # of the share of the pair that loses most
_FEWEST_PAIRS = 2  # of an end

Way: TypeAlias = tuple[str, str, str]  # from, to, address


class Lost(Struct, frozen=True):
    """Small packets that were sent, and those of them that got lost."""

    sent: int
    lost: int

    @property
    def share(self) -> float:
        """Return the lost share; 0 where nothing was sent."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def is_loss(self) -> bool:
        """Return whether that is more than an accident."""
        return self.lost >= _FEWEST_LOST and self.share >= _LEAST_SHARE


class LossyEnd(Struct, frozen=True):
    """A node that loses packets in one direction with all or most of its partners."""

    host: str
    end: End
    total: Lost
    pairs: tuple[Pair, ...]


class LossyPair(Struct, frozen=True):
    """A pair that loses packets in that direction though its ends do not with others."""

    pair: Pair
    total: Lost


class LossyParts(Struct, frozen=True):
    """Where packets get lost. `by_pair`: what was tried."""

    ends: tuple[LossyEnd, ...]
    pairs: tuple[LossyPair, ...]
    by_pair: dict[Pair, Lost]


def to_try(probes: Sequence[Probe], places: Places) -> tuple[Transfer, ...]:
    """Return the pairs of NCCL's network to try, or to try again, each in one direction: trying covers both."""
    place = {host: position for position, host in enumerate(places)}
    tried = _tried(probes, places)
    if not tried:
        found = dict.fromkeys(frozenset(pair) for pair in _suspicious(probes, places))
    else:
        found = dict.fromkeys(frozenset(pair) for pair, lost in tried.items() if _is_unsure(pair, tried))
    ordered = (sorted(place[host] for host in pair) for pair in found)
    return tuple((0, *_spread(first, second)) for first, second in ordered)


def without_lossy(
    transfers: Iterable[Transfer], probes: Sequence[Probe], places: Places
) -> tuple[Transfer, ...]:
    """Return the transfers without those of NCCL's network, `places`, whose pair is known to lose packets."""
    hosts = tuple(places)
    lossy = {frozenset(pair) for pair, lost in _tried(probes, places).items() if lost.is_loss}
    return tuple(
        (network, source, target)
        for network, source, target in transfers
        if network or frozenset((hosts[source], hosts[target])) not in lossy
    )


def _spread(first: int, second: int) -> tuple[int, int]:
    """Return the caller and the called of each pair, so that not always the same nodes call."""
    return (first, second) if (first + second) % 2 else (second, first)


def _suspicious(probes: Sequence[Probe], places: Places) -> Iterator[Pair]:
    """Yield the pairs of which a transfer, or a round trip on the idle network, had packets sent again."""
    for probe in attempts(probes, places, "bandwidth"):
        resent, segments = _counted(probe.measured)
        if resent >= max(_SUSPICIOUS_RESENT, _SUSPICIOUS_SHARE * segments) or probe.value is None:
            yield probe.from_host, probe.to_host
    for probe in attempts(probes, places, "latency"):
        if _counted(probe.measured)[0] or probe.value is None:
            yield probe.from_host, probe.to_host


def _counted(measured: Measured | None) -> tuple[int, int]:
    if measured is None or isinstance(measured.resent, Missing) or isinstance(measured.segments, Missing):
        return 0, 0
    return measured.resent, measured.segments


def _is_unsure(pair: Pair, tried: Mapping[Pair, Lost]) -> bool:
    """Return whether packets got lost in this direction, and in neither direction enough to say the share."""
    nothing = Lost(0, 0)
    return (
        bool(tried[pair].lost) and max(tried[pair].lost, tried.get(pair[::-1], nothing).lost) < _ENOUGH_LOST
    )


def _tried(probes: Sequence[Probe], places: Places) -> dict[Pair, Lost]:
    found: dict[Pair, Lost] = {}
    for probe in attempts(probes, places, "loss"):
        resent, segments = _counted(probe.measured)
        if segments:
            found[probe.from_host, probe.to_host] = Lost(segments, resent)
    return found


def added_up(probes: Sequence[Probe], again: Sequence[Probe]) -> tuple[Probe, ...]:
    """Return the probes with those that were made again: packets that were counted twice add up."""
    known = {_host_pair(probe): probe for probe in probes if probe.kind == "loss"}
    for probe in again:
        known[_host_pair(probe)] = (
            _sum(known[_host_pair(probe)], probe) if _host_pair(probe) in known else probe
        )
    return (*(probe for probe in probes if probe.kind != "loss"), *known.values())


def _host_pair(probe: Probe) -> Way:
    return probe.from_host, probe.to_host, probe.address


def _sum(before: Probe, again: Probe) -> Probe:
    if before.measured is None or again.measured is None:
        return before if again.measured is None else again
    (lost_before, sent_before), (lost, sent) = _counted(before.measured), _counted(again.measured)
    total = Lost(sent_before + sent, lost_before + lost)
    measured = replace(
        again.measured,
        samples=before.measured.samples + again.measured.samples,
        seconds=round(before.measured.seconds + again.measured.seconds, 4),
        transfers=before.measured.transfers + 1,
        segments=total.sent,
        resent=total.lost,
    )
    return replace(again, value=round(100 * total.share, 3), measured=measured)


def lossy_parts(probes: Sequence[Probe], places: Places) -> LossyParts:
    """Return the nodes that lose packets, as senders or as receivers, and the pairs that they do not explain.

    A pair that was measured and gave no reason to try it counts as one that loses nothing.
    """
    tried = _tried(probes, places)
    lossy = _lossy(tried)
    if not lossy:
        return LossyParts((), (), tried)
    clean = {
        (probe.from_host, probe.to_host): Lost(0, 0)
        for kind in ("latency", "bandwidth")
        for probe in attempts(probes, places, "latency" if kind == "latency" else "bandwidth")
        if probe.value is not None
    }
    known = {**clean, **tried}
    candidates: list[LossyEnd] = []
    if len({host for pair in known for host in pair}) >= FEWEST_NODES:
        found = (_lossy_end(key, pairs, known, lossy) for key, pairs in _by_end(known).items())
        candidates = [end for end in found if end is not None]
    kinds: tuple[tuple[End, ...], ...] = (("receiver",), ("sender",), ("receiver", "sender"))
    explained = [_explained(lossy, [end for end in candidates if end.end in kind]) for kind in kinds]
    ends, left = min(explained, key=lambda found: (len(found[1]), len(found[0])))
    pairs = tuple(LossyPair(pair, tried[pair]) for pair in sorted(left) if tried[pair].is_loss)
    return LossyParts(ends, pairs, tried)


def _lossy(tried: Mapping[Pair, Lost]) -> frozenset[Pair]:
    """Return the pairs that lost packets, without those that lost next to nothing beside the others.

    Where both a packet and the word about it get lost, it is counted in the wrong direction.
    """
    most = max((lost.share for lost in tried.values()), default=0.0)
    return frozenset(
        pair
        for pair, lost in tried.items()
        if lost.is_loss or (lost.lost and lost.share >= _NEXT_TO_NOTHING * most)
    )


def _explained(
    lossy: Collection[Pair], candidates: Iterable[LossyEnd]
) -> tuple[tuple[LossyEnd, ...], frozenset[Pair]]:
    """Return the ends that explain most of the lossy pairs, the largest first, and the pairs that they do not."""
    left, ends = frozenset(lossy), []
    for end in sorted(candidates, key=lambda end: (-len(end.pairs), -end.total.share, end.host)):
        if len(left.intersection(end.pairs)) >= _FEWEST_PAIRS:
            ends.append(end)
            left = left.difference(end.pairs)
    return tuple(ends), left


def _by_end(known: Mapping[Pair, Lost]) -> dict[tuple[str, End], list[Pair]]:
    found: dict[tuple[str, End], list[Pair]] = {}
    for pair in known:
        found.setdefault((pair[0], "sender"), []).append(pair)
        found.setdefault((pair[1], "receiver"), []).append(pair)
    return found


def _lossy_end(
    key: tuple[str, End], pairs: Sequence[Pair], known: Mapping[Pair, Lost], lossy: Collection[Pair]
) -> LossyEnd | None:
    lossy_pairs = tuple(sorted(pair for pair in pairs if pair in lossy))
    total = Lost(sum(known[pair].sent for pair in pairs), sum(known[pair].lost for pair in pairs))
    is_most = len(lossy_pairs) >= max(_FEWEST_PAIRS, _MOST_PAIRS_LOSSY * len(pairs))
    return LossyEnd(*key, total, lossy_pairs) if is_most and total.is_loss else None
