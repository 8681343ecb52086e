"""What a run saw that somebody disturbed, or while its own process stood still: nobody is accused of it.

Erased and forged messages look like nodes that hang. So where the store shows that another program writes into it, what
was concluded from silence is dropped, and the verdict is inconclusive.
"""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.model.bench import BenchResult, Comparison
from ncclcheck.model.benchmarks.isolation import PairIsolation
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot, StoreChanged

_OF_RANKS = ("died", "hang")  # events of a soak that tell of a rank
STRANGER = "another program writes into the store of this run"


def store_changes(store: Store, host: str) -> tuple[StoreChanged, ...]:
    """Return what of this process's own messages somebody else has changed in the store."""
    if not isinstance(store, RecordingStore):
        return ()
    return tuple(StoreChanged(host, key, what) for key, what in store.changed().items())


def with_store_changes(snapshot: Snapshot, changes: tuple[StoreChanged, ...]) -> Snapshot:
    """Return the snapshot without what was concluded from messages, where somebody else erases or writes them."""
    if not changes:
        return snapshot
    why = Missing("error", STRANGER)
    own = {change.host for change in changes}
    return replace(
        snapshot,
        store_changed=changes,
        silent=tuple(node for node in snapshot.silent if node.phase != "end" and node.host not in own),
        refused=(),
        bench=_bench_without(snapshot.bench, STRANGER, keep=()),
        comparison=_compared(snapshot.comparison, why),
        isolation=_unless_absent(snapshot.isolation, why),
        matrix=_unless_absent(snapshot.matrix, why),
    )


def _bench_without(bench: Fact[BenchResult], why: str, keep: tuple[str, ...]) -> Fact[BenchResult]:
    """Return the benchmark without the ranks that failed, but for failures of a kind that needs no doubt."""
    if isinstance(bench, Missing) or all(failure.state in keep for failure in bench.failures):
        return bench
    kept = tuple(failure for failure in bench.failures if failure.state in keep)
    soak = bench.soak
    if soak is not None:
        events = tuple(event for event in soak.events if event.kind not in _OF_RANKS)
        soak = replace(soak, events=events)
    unfinished = "; ".join(filter(None, (bench.unfinished, why)))
    return replace(bench, failures=kept, unfinished=unfinished, soak=soak)


def _compared(comparison: Fact[Comparison], why: Missing) -> Fact[Comparison]:
    return comparison if isinstance(comparison, Missing) else why


def _unless_absent(
    found: Fact[PairIsolation] | Fact[FabricMatrix], why: Missing
) -> Fact[PairIsolation] | Fact[FabricMatrix]:
    return found if isinstance(found, Missing) else why
