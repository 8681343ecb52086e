"""The end of workers: waited for as long as GPUs need, and what does not die is named and starts nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.nodes import ending
from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.bench_watch import BenchWatch
from ncclcheck.bench.nodes.ending import end_sets
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.run.steps.bench import cannot_measure, stop_workers
from tests.bench.nodes.benches import rank, session, watched, word
from tests.builders import cluster

PLAN = BenchPlan("nccl", ("all_reduce",), (1 << 10,), "float32", 1, 2, 5.0, True)
ORDER = BenchOrder(PLAN, 2, ("node01", "node02"), {"11": 0, "12": 1}, {"11": 1, "12": 1}, {}, "n", 30.0)
NETWORK = BenchNetwork("nccl", {"node01": 1, "node02": 1}, {}, {}, "a test")
UNDEAD = "rank 1 (pid 4711, state D)"


def watching(store: Store, order: BenchOrder = ORDER) -> BenchWatch:
    """Both nodes have spoken a moment ago."""
    for number, ticket in enumerate((11, 12)):
        store.set(f"bench/state/{ticket}", word(rank(number)))
    watch = BenchWatch(watched(store, order, NETWORK))
    watch.look()
    return watch


def say_done(store: Store, of_second: tuple[str, ...] = ()) -> None:
    store.set_document("bench/done/11", encode(()))
    store.set_document("bench/done/12", encode(of_second))


def later(seconds: float, what: Callable[[], None]) -> None:
    threading.Timer(seconds, what).start()


def test_workers_that_died_leave_nothing(store: Store) -> None:
    watch = watching(store)
    say_done(store)
    assert end_sets([watch], 60.0) == ""
    assert store.get("bench/stop") == b"1"
    result = watch.with_logs(watch.result(()))
    assert (result.undead, result.unfinished) == ((), "")


def test_what_does_not_die_is_named_and_nothing_is_measured_after_it(store: Store) -> None:
    watch = watching(store)
    say_done(store, (UNDEAD,))
    at = session(store, cluster(2))
    stop_workers(at, [watch])
    assert watch.with_logs(watch.result(())).undead == (f"{UNDEAD} on node02",)
    found = cannot_measure(at)
    assert isinstance(found, Missing)
    assert f"GPUs may still be held: SIGKILL did not end {UNDEAD} on node02" in found.detail


@pytest.mark.slow
def test_contexts_get_the_time_that_they_need(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than workers without GPUs, which are given up after END_WORKERS_S."""
    monkeypatch.setattr(ending, "END_WORKERS_S", 0.2)
    watch = watching(store)
    later(1.0, lambda: say_done(store))
    assert end_sets([watch], 60.0) == ""
    assert timeouts.END_GPU_WORKERS_S > timeouts.KILL_GPU_WORKERS_S >= 10.0


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_node_that_does_not_say_so_in_time_is_unknown_on_gpus(
    store: Store, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(ending, "END_GPU_WORKERS_S", 0.3)
    monkeypatch.setattr(ending, "END_WORKERS_S", 0.3)
    watch = watching(store, replace(ORDER, plan=replace(PLAN, backend=backend)))
    store.set_document("bench/done/11", encode(()))
    began = time.monotonic()
    held = end_sets([watch], 60.0)
    assert time.monotonic() - began < 10
    unsaid = "node02 did not say that the workers ended there"
    assert held == watch.with_logs(watch.result(())).unfinished == (unsaid if backend == "nccl" else "")


def test_a_list_that_is_none_is_not_believed_to_be_empty(store: Store) -> None:
    watch = watching(store)
    say_done(store)
    store.set_document("bench/done/12", b"{}")
    assert "an unreadable list" in end_sets([watch], 60.0)
