"""What the probes prove: which addresses of which nodes every other node has reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import permutations

from msgspec import Struct

from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.snapshot import Coverage, Probe, ProbeOutcome, Snapshot

_RUNS = 4  # a run, and what is made of it when a node fell silent or a benchmark was compared

Places = Mapping[str, tuple[str, str]]  # host -> (interface, address) that is listened on there


class Failure(Struct, frozen=True):
    """The first connection that did not succeed. `tested` is False where it was not tried."""

    text: str
    tested: bool


class Reach(Struct, frozen=True):
    """The outcome of each TCP probe by (from, to, address), and the ordered pairs of nodes that have to succeed.

    The pairs of a sample are in no order. `reached`: the (host, address) that all who have to call this host reached.
    """

    outcomes: dict[tuple[str, str, str], ProbeOutcome]
    stalled: frozenset[tuple[str, str, str]]
    pairs: tuple[tuple[str, str], ...]
    nodes: int
    reached: frozenset[tuple[str, str]]
    is_sample: bool

    def failure(self, places: Places) -> Failure | None:
        """Return the first pair that did not connect, before pairs that were not tested; None when all connected."""
        if self.reached.issuperset((host, address) for host, (_, address) in places.items()):
            return None
        outcomes = self.outcomes
        tried = [(pair, outcomes.get((*pair, places[pair[1]][1]))) for pair in self.pairs]
        failed = [pair for pair, outcome in tried if outcome not in ("ok", None)]
        untested = failed or [pair for pair, outcome in tried if outcome is None]
        return self._failure(*self._first(untested), places) if untested else None

    def _failure(self, source: str, target: str, places: Places) -> Failure:
        interface, address = places[target]
        outcome = self.outcomes.get((source, target, address))
        where = f"{source} to {target} on {interface} ({address})"
        return Failure(f"{where}: {outcome or 'not tested'}", tested=outcome is not None)

    def stall(self, places: Places) -> str | None:
        """Return the first pair where small messages pass and large ones are lost; None when there is none."""
        if not self.stalled:
            return None
        stalled = [pair for pair in self.pairs if (*pair, places[pair[1]][1]) in self.stalled]
        if not stalled:
            return None
        source, target = self._first(stalled)
        interface, address = places[target]
        return f"{source} to {target} on {interface} ({address}): large messages do not arrive"

    def _first(self, pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
        return min(pairs) if self.is_sample else pairs[0]

    def evidence(self, places: Places) -> str:
        """One sentence that says what was tried, for places without a failure."""
        names = " and ".join(dict.fromkeys(interface for interface, _ in places.values()))
        return f"all {len(self.pairs)} connections between the {self.nodes} nodes on {names} succeeded"


def read_reach(snapshot: Snapshot) -> Fact[Reach]:
    """Return the probes of the snapshot; Missing where they cannot prove reach between all nodes of the job."""
    if snapshot.viewpoint == "one-node" and snapshot.lost_run:
        return Missing("absent", f"{snapshot.lost_run}, and with it what the connection tests found")
    if snapshot.viewpoint == "one-node":
        return Missing("absent", "the nodes did not meet, so the connections between them were not tested")
    silent = [
        node.host for node in snapshot.silent if node.phase != "end"
    ]  # those that ended later had told theirs
    if silent:
        return Missing("absent", f"no results from {listed(silent, 4)}")
    if isinstance(snapshot.probes, Missing):
        return snapshot.probes
    hosts = tuple(dict.fromkeys(node.host for node in snapshot.nodes))
    return _reach_between(SameObject(snapshot.probes), hosts, snapshot.coverage)


@lru_cache(maxsize=_RUNS)
def _reach_between(
    probes: SameObject[tuple[Probe, ...]], hosts: tuple[str, ...], coverage: Fact[Coverage]
) -> Fact[Reach]:
    """Return what the probes say of these hosts. A run asks with several snapshots that hold the same probes."""
    outcomes, stalled = _tried(probes.value)
    known = frozenset(hosts)
    probed = {(source, target) for source, target, _ in outcomes if source in known and target in known}
    pairs: Iterable[tuple[str, str]] = permutations(hosts, 2)
    is_sample = not isinstance(coverage, Missing) and coverage.pairs_planned < coverage.pairs_possible
    if is_sample and not isinstance(coverage, Missing):
        if len(probed) < coverage.pairs_planned or {target for _, target in probed} != set(hosts):
            return Missing("absent", f"{len(probed)} of {coverage.pairs_planned} planned pairs were tried")
        pairs = probed | {(target, source) for source, target in probed}
    listed = tuple(pairs)
    return Reach(outcomes, stalled, listed, len(hosts), _reached(outcomes, listed), is_sample)


def _tried(
    probes: tuple[Probe, ...],
) -> tuple[dict[tuple[str, str, str], ProbeOutcome], frozenset[tuple[str, str, str]]]:
    """Return the outcome of each connection by (from, to, address), and those where large messages are lost."""
    outcomes: dict[tuple[str, str, str], ProbeOutcome] = {}
    for probe in of_kind(probes, "tcp"):
        if probe.listener == "nccl" and probe.outcome in {"error", "self"}:
            continue  # NCCL's own listener was not tried: what ours proved stands
        key = probe.from_host, probe.to_host, probe.address
        if outcomes.get(key, "ok") == "ok":
            outcomes[key] = probe.outcome
    stalled = frozenset(
        (probe.from_host, probe.to_host, probe.address)
        for probe in of_kind(probes, "mtu")
        if probe.outcome == "stalled"
    )
    return outcomes, stalled


def _reached(
    outcomes: Mapping[tuple[str, str, str], ProbeOutcome], pairs: Collection[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """Return the (host, address) that all who have to call this host reached."""
    callers = Counter(target for _, target in pairs)
    called = frozenset(pairs)
    found = Counter(
        (target, address)
        for (source, target, address), outcome in outcomes.items()
        if outcome == "ok" and (source, target) in called
    )
    return frozenset(place for place, count in found.items() if count == callers[place[0]])
