"""What the probes prove: which addresses of which nodes every other node has reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations

from msgspec import Struct

from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import ProbeOutcome, Snapshot

Places = Mapping[str, tuple[str, str]]  # host -> (interface, address) that is listened on there


class Failure(Struct, frozen=True):
    """The first connection that did not succeed. `tested` is False where it was not tried."""

    text: str
    tested: bool


class Reach(Struct, frozen=True):
    """The outcome of each TCP probe by (from, to, address), and the ordered pairs of nodes that have to succeed."""

    outcomes: dict[tuple[str, str, str], ProbeOutcome]
    stalled: frozenset[tuple[str, str, str]]
    pairs: tuple[tuple[str, str], ...]
    nodes: int

    def failure(self, places: Places) -> Failure | None:
        """Return the first pair that did not connect, before pairs that were not tested; None when all connected."""
        outcome_of = self.outcomes.get
        untested = None
        for source, target in self.pairs:
            outcome = outcome_of((source, target, places[target][1]))
            if outcome == "ok":
                continue
            if outcome is not None:
                return self._failure(source, target, places)
            untested = untested or (source, target)
        return self._failure(*untested, places) if untested else None

    def _failure(self, source: str, target: str, places: Places) -> Failure:
        interface, address = places[target]
        outcome = self.outcomes.get((source, target, address))
        where = f"{source} to {target} on {interface} ({address})"
        return Failure(f"{where}: {outcome or 'not tested'}", tested=outcome is not None)

    def stall(self, places: Places) -> str | None:
        """Return the first pair where small messages pass and large ones are lost; None when there is none."""
        if not self.stalled:
            return None
        for source, target in self.pairs:
            interface, address = places[target]
            if (source, target, address) in self.stalled:
                return f"{source} to {target} on {interface} ({address}): large messages do not arrive"
        return None

    def evidence(self, places: Places) -> str:
        """One sentence that says what was tried, for places without a failure."""
        names = " and ".join(dict.fromkeys(interface for interface, _ in places.values()))
        return f"all {len(self.pairs)} connections between the {self.nodes} nodes on {names} succeeded"


def read_reach(snapshot: Snapshot) -> Fact[Reach]:
    """Return the probes of the snapshot; Missing where they cannot prove reach between all nodes of the job."""
    hosts = dict.fromkeys(node.host for node in snapshot.nodes)
    if snapshot.viewpoint == "one-node":
        return Missing("absent", "the nodes did not meet, so the connections between them were not tested")
    if snapshot.silent:
        return Missing("absent", f"no results from {some_of(node.host for node in snapshot.silent)}")
    if isinstance(snapshot.probes, Missing):
        return snapshot.probes
    outcomes: dict[tuple[str, str, str], ProbeOutcome] = {}
    stalled = set()
    for probe in (*of_kind(snapshot.probes, "tcp"), *of_kind(snapshot.probes, "mtu")):
        key = probe.from_host, probe.to_host, probe.address
        if probe.listener == "nccl" and probe.outcome in {"error", "self"}:
            continue  # NCCL's own listener was not tried: what ours proved stands
        if probe.kind == "tcp" and outcomes.get(key, "ok") == "ok":
            outcomes[key] = probe.outcome
        elif probe.kind == "mtu" and probe.outcome == "stalled":
            stalled.add(key)
    probed = {(source, target) for source, target, _ in outcomes if source in hosts and target in hosts}
    pairs: Iterable[tuple[str, str]] = permutations(hosts, 2)
    coverage = snapshot.coverage
    if not isinstance(coverage, Missing) and coverage.pairs_planned < coverage.pairs_possible:
        if len(probed) < coverage.pairs_planned or {target for _, target in probed} != set(hosts):
            return Missing("absent", f"{len(probed)} of {coverage.pairs_planned} planned pairs were tried")
        pairs = sorted(probed | {(target, source) for source, target in probed})
    return Reach(outcomes, frozenset(stalled), tuple(pairs), len(hosts))


def some_of(names: Iterable[str], limit: int = 4) -> str:
    """Return the names as prose: all of a few, else the first of many and how many more."""
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more
