"""A node's workers end when they must, and node 0 hears of them in messages that are read strictly."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.nodes.bench_order import BenchOrder, BenchState
from ncclcheck.bench.nodes.node_workers import run_workers
from ncclcheck.bench.supervise import Running
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import read_message
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.model.bench import Backend, BenchPlan
from ncclcheck.model.errors import DecodeError
from tests.bench.nodes.benches import SMALL, context, rank, word, worker_node
from tests.exchange.store.gone_backend import GoneBackend
from tests.fact_builders import some


def changed(old: bytes, new: bytes) -> bytes:
    good = word(rank(0))
    assert good.count(old) == 1
    return good.replace(old, new)


def test_a_word_is_read_as_it_was_said() -> None:
    said = word(rank(0), rank(1, exit_code=-9, stat=""), points=2, sequence=7, left="interrupted")
    message = read_message(said, BenchState, SMALL)
    assert (message.sequence, message.points, message.left) == (7, 2, "interrupted")
    assert message.states == (rank(0), rank(1, exit_code=-9, stat=""))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x80\x04.",
        changed(b'"schema_version":"1"', b'"schema_version":"2"'),
        changed(b'"sequence":1', b'"sequence":"1"'),
        changed(b'"sequence":1', b'"sequence":1,"shell":"sh"'),
        changed(b'"done"', b'"dancing"'),
        changed(b"4000", b'"4000"'),
        changed(b'"points":0', b'"points":null'),
        changed(b'"left":""', b'"left":"bored"'),
    ],
)
def test_a_word_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(DecodeError):
        read_message(message, BenchState, SMALL)


@pytest.fixture
def order() -> BenchOrder:
    """An order that has no rank for ticket 12."""
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 0, 2, 5.0, True)
    return BenchOrder(
        plan, 1, ("node01",), {"11": 0}, {"11": 1}, {"11": {"GLOO_SOCKET_IFNAME": "lo"}}, "n", 30.0
    )


@pytest.mark.slow
def test_a_node_says_where_its_workers_are_until_it_is_told_to_stop(store: Store, order: BenchOrder) -> None:
    store.set("bench/stop", b"1")
    deadline = Deadline(30)
    run_workers(worker_node(context(), store, 12), [order])
    assert deadline.left() > 25
    message = read_message(some(store.get("bench/state/12")), BenchState, SMALL)
    assert (message.sequence, message.states, message.points, message.left) == (1, (), 0, "")
    assert store.get_document("bench/done/12") == b"[]"


@pytest.mark.slow
def test_a_node_that_is_never_told_anything_ends_with_the_order(store: Store, order: BenchOrder) -> None:
    run_workers(worker_node(context(), store, 12), [replace(order, deadline_s=0.5)])
    assert read_message(some(store.get("bench/state/12")), BenchState, SMALL).left == "timeout"
    assert store.get_document("bench/done/12") == b"[]"


def test_a_node_that_lost_node_0_ends_its_workers(order: BenchOrder) -> None:
    deadline = Deadline(30)
    lost = run_workers(worker_node(context(), DeadlineStore(GoneBackend(), 29500), 12), [order])
    assert deadline.left() > 25
    assert lost is not None
    assert "Connection reset by peer" in lost.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "seconds"), [("gloo", timeouts.KILL_WORKERS_S), ("nccl", timeouts.KILL_GPU_WORKERS_S)]
)
def test_workers_on_gpus_get_longer_to_die_since_the_driver_frees_their_memory_first(
    store: Store, order: BenchOrder, monkeypatch: pytest.MonkeyPatch, backend: Backend, seconds: float
) -> None:
    patience: list[float] = []

    def stop(_running: Running, within_s: float) -> tuple[str, ...]:
        patience.append(within_s)
        return ("rank 3 (pid 4711, state D)",)

    monkeypatch.setattr(Running, "stop", stop)
    store.set("bench/stop", b"1")
    run_workers(
        worker_node(context(), store, 12), [replace(order, plan=replace(order.plan, backend=backend))]
    )
    assert patience == [seconds]
    assert store.get_document("bench/done/12") == b'["rank 3 (pid 4711, state D)"]'
