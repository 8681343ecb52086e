"""Results that were disturbed from outside or by a pause of this process: no node is blamed for them.

Erased and forged messages look like nodes that hang. So where the store shows that another program writes into it, what
was concluded from silence is dropped, and the verdict is inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import ranks_mark
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.model.bench import BenchResult, Comparison
from ncclcheck.model.benchmarks.isolation import PairIsolation
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Probe, Snapshot, StoodStill, StoreChanged
from ncclcheck.timeouts import STOOD_STILL_S

_OF_RANKS = ("died", "hang")  # events of a soak that tell of a rank
_OF_REACH, _OF_MEASURE = ("tcp", "mtu"), ("latency", "bandwidth", "clock", "loss")
_SEEN = ("died",)  # how a rank failed that its own node saw, whoever listened
STRANGER = "another program writes into the store of this run"


def store_changes(store: Store, host: str) -> tuple[StoreChanged, ...]:
    """Return which of this process's messages another process changed in the store."""
    if not isinstance(store, RecordingStore):
        return ()
    changes = store.changed()
    if of_ranks := ranks_mark(store.inner):
        changes[keys.RANKS_MARK] = of_ranks
    return tuple(StoreChanged(host, key, what) for key, what in changes.items())


def with_store_changes(snapshot: Snapshot, changes: tuple[StoreChanged, ...]) -> Snapshot:
    """Return the snapshot without conclusions from messages that another process erased or wrote."""
    if not changes:
        return snapshot
    why = Missing("error", STRANGER)
    reporting_hosts = {change.host for change in changes}
    return replace(
        snapshot,
        store_changed=changes,
        silent=tuple(
            node for node in snapshot.silent if node.phase != "end" and node.host not in reporting_hosts
        ),
        refused=(),
        bench=_bench_without(snapshot.bench, STRANGER, states=()),
        comparison=_compared(snapshot.comparison, why),
        isolation=_unless_absent(snapshot.isolation, why),
        matrix=_unless_absent(snapshot.matrix, why),
    )


def with_pauses(
    snapshot: Snapshot, listener: StoodStill, pauses: Mapping[str, Mapping[str, float]]
) -> Snapshot:
    """Return the snapshot without the consequences of a pause of an ncclcheck process.

    `listener`: the pause of the coordinator; the nodes silent meanwhile are unknown. `pauses`: host -> step -> seconds.
    A pause without consequences is not reported.
    """
    undisturbed, spoilt = _untouched(snapshot.probes, pauses)
    seen = replace(snapshot, probes=undisturbed)
    still: list[StoodStill] = []
    if listener.seconds >= STOOD_STILL_S:
        why = Missing("timeout", listener.sentence)
        seen = replace(
            seen,
            bench=_bench_without(seen.bench, listener.sentence, states=_SEEN),
            isolation=why if _is_bad(seen.isolation) else seen.isolation,
            matrix=why if _has_lost(seen.matrix) else seen.matrix,
        )
        is_heard = seen.bench is snapshot.bench and seen.isolation is snapshot.isolation
        if not is_heard or seen.matrix is not snapshot.matrix or seen.silent:
            still.append(replace(listener, is_listener=True))
    named = spoilt | {node.host for node in snapshot.silent} | _failed_hosts(snapshot.bench)
    known = {pause.host for pause in still}
    still += [
        StoodStill(host, max(steps.values()))
        for host, steps in pauses.items()
        if steps and host in named - known
    ]
    return replace(seen, stood_still=tuple(still)) if still else snapshot


def with_own_pause(snapshot: Snapshot, host: str, seconds: float) -> Snapshot:
    """Return what a node saw that lost node 0: where it stood still itself, the run may have ended meanwhile."""
    if seconds < STOOD_STILL_S:
        return snapshot
    return replace(snapshot, stood_still=(StoodStill(host, round(seconds, 1), is_listener=True),))


def _untouched(
    probes: Fact[tuple[Probe, ...]], pauses: Mapping[str, Mapping[str, float]]
) -> tuple[Fact[tuple[Probe, ...]], set[str]]:
    """Return the probes that no pause of an end may have spoilt, and the hosts of which probes were dropped."""
    if isinstance(probes, Missing):
        return probes, set()
    undisturbed, spoilt = [], set()
    for probe in probes:
        ends = {host for host in (probe.from_host, probe.to_host) if _has_spoilt(probe, pauses.get(host, {}))}
        spoilt |= ends
        undisturbed += [] if ends else [probe]
    return tuple(undisturbed), spoilt


def _has_spoilt(probe: Probe, steps: Mapping[str, float]) -> bool:
    if probe.kind in _OF_REACH:
        return "reach" in steps and probe.outcome != "ok"
    return probe.kind in _OF_MEASURE and "measure" in steps


def _is_bad(isolation: Fact[PairIsolation]) -> bool:
    if isinstance(isolation, Missing):
        return False
    return bool(isolation.nodes or isolation.links or isolation.groups)


def _has_lost(matrix: Fact[FabricMatrix]) -> bool:
    return not isinstance(matrix, Missing) and bool(matrix.nodes)


def _failed_hosts(bench: Fact[BenchResult]) -> set[str]:
    return set() if isinstance(bench, Missing) else {failure.host for failure in bench.failures}


def _bench_without(bench: Fact[BenchResult], why: str, states: tuple[str, ...]) -> Fact[BenchResult]:
    """Return the benchmark without the ranks that failed, but for failures of a kind that needs no doubt."""
    if isinstance(bench, Missing) or all(failure.state in states for failure in bench.failures):
        return bench
    failures = tuple(failure for failure in bench.failures if failure.state in states)
    soak = bench.soak
    if soak is not None:
        events = tuple(event for event in soak.events if event.kind not in _OF_RANKS)
        soak = replace(soak, events=events)
    unfinished = "; ".join(filter(None, (bench.unfinished, why)))
    return replace(bench, failures=failures, unfinished=unfinished, soak=soak)


def _compared(comparison: Fact[Comparison], why: Missing) -> Fact[Comparison]:
    return comparison if isinstance(comparison, Missing) else why


def _unless_absent(
    found: Fact[PairIsolation] | Fact[FabricMatrix], why: Missing
) -> Fact[PairIsolation] | Fact[FabricMatrix]:
    return found if isinstance(found, Missing) else why
