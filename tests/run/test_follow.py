"""A refused order stops nothing: node 0's own is followed, and what was refused is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.node_workers import WorkerNode
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import OWN_ORDERS, SCHEMA
from ncclcheck.exchange.probe.reachability import Listeners
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.nccl.nccl_listener import NcclListener
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchRequest
from ncclcheck.model.benchmarks.trials import TryRequest
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.run.context import Context
from ncclcheck.run.follow import Lost, OrderReader, follow
from ncclcheck.run.local_node import LocalNode
from ncclcheck.run.options import RunOptions
from ncclcheck.run.session import OrderMessage
from ncclcheck.run.steps import bench as bench_step
from ncclcheck.run.steps.base import Participant
from ncclcheck.run.steps.confirm import ConfirmOrder
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.steps.late import MOST_TOLD, refused_orders
from ncclcheck.run.steps.list_code import ListCodeOrder
from ncclcheck.run.steps.recount import RecountOrder
from tests.fact_builders import launch, node_facts

EVIL = ConfirmOrder({"2": ({"LD_PRELOAD": "/tmp/evil.so"},)}, 5.0)


def give(store: Store, number: int, order: object) -> None:
    store.set_document(keys.step(number), encode(OrderMessage(SCHEMA, "1", order)))


def reader(store: Store, said: list[str] | None = None) -> OrderReader:
    say = (said if said is not None else []).append
    context = Context(RunOptions("preflight"), {}, launch(0, 2), "node01", Deadline(60), say)
    return OrderReader(Participant(context, store, 2, ""))


@pytest.mark.parametrize(("count", "starts"), [({"1": 1, "2": 1}, True), ({"1": 2}, False)])
def test_a_further_rank_starts_its_worker_where_the_order_names_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, count: dict[str, int], starts: bool
) -> None:
    followed: list[tuple[WorkerNode, list[BenchOrder]]] = []
    monkeypatch.setattr(bench_step, "run_workers", lambda *given: followed.append(given))
    plan = BenchPlan("nccl", ("all_reduce",), (1 << 10,), "float32", 0, 2, 5.0, verify=True)
    first = {ticket: number for number, ticket in enumerate(count)}
    order = BenchOrder(plan, 2, ("node01", "node01"), first, count, {}, "n", 30.0)
    give(store, 0, order)
    give(store, 1, Finish(0, ()))
    place = replace(launch(0, 1, local_world_size=2), local_rank=1)
    context = Context(RunOptions("bench"), {}, place, "node01", Deadline(60), lambda _: None)
    assert follow(Participant(context, store, 2, "")) == Finish(0, ())
    assert [(node.ticket, node.local_rank, orders) for node, orders in followed] == (
        [(2, 1, [order])] if starts else []
    )


def test_a_further_rank_passes_over_orders_that_are_for_the_agents_alone(store: Store) -> None:
    for number in (0, 1, 2):
        store.set_document(keys.step(number), OWN_ORDERS)
    give(store, 3, Finish(0, ()))
    place = replace(launch(0, 1, local_world_size=2), local_rank=1)
    context = Context(RunOptions("preflight"), {}, place, "node01", Deadline(10), lambda _: None)
    assert follow(Participant(context, store, 2, "")) == Finish(0, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "when"), [(0, "while the nodes joined"), (1, "after the last count of the nodes")]
)
def test_when_node_0_was_lost_is_told_by_the_last_order(store: Store, given: int, when: str) -> None:
    for number in range(given):
        give(store, number, RecountOrder())
    context = Context(RunOptions("preflight"), {}, launch(0, 2), "node01", Deadline(1.0), lambda _: None)
    local = LocalNode(node_facts(0, 2), Listeners(), (), Missing("absent"), NcclListener())
    lost = follow(Participant(context, store, 2, "", local))
    assert isinstance(lost, Lost)
    assert lost.when == when


class _Watched(NcclListener):
    """A listener that notes when it is closed. State: whether it was."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True
        super().close()


@pytest.mark.parametrize(("order", "is_closed"), [(ListCodeOrder({}), False), (RecountOrder(), True)])
def test_nccls_listener_is_open_until_the_other_nodes_have_connected(
    store: Store, order: object, is_closed: bool
) -> None:
    give(store, 0, order)
    context = Context(RunOptions("preflight"), {}, launch(0, 2), "node01", Deadline(1.0), lambda _: None)
    listener = _Watched()
    local = LocalNode(node_facts(0, 2), Listeners(), (), Missing("absent"), listener)
    follow(Participant(context, store, 2, "", local))
    assert listener.is_closed is is_closed


def test_a_further_rank_starts_one_worker_at_most(store: Store) -> None:
    place = replace(launch(0, 1, local_world_size=2), local_rank=1)
    context = Context(RunOptions("bench"), {}, place, "node01", Deadline(60), lambda _: None)
    assert Participant(context, store, 2, "").bounds.most_ranks == 1


def test_orders_come_in_turn(store: Store) -> None:
    give(store, 0, RecountOrder())
    give(store, 1, Finish(0, ()))
    steps = reader(store)
    assert steps.next(Deadline(5)) == (0, RecountOrder())
    assert steps.next(Deadline(5)) == (1, Finish(0, ()))
    assert refused_orders(store, {2: "node2"}) == ()


def test_an_agent_that_came_late_passes_over_orders_for_the_others_and_reads_the_verdict(
    store: Store,
) -> None:
    for number in (0, 1, 2):
        store.set_document(keys.step(number), OWN_ORDERS)
    give(store, 3, Finish(1, ()))
    steps = reader(store)
    steps._is_further_rank = False
    assert steps.next(Deadline(5)) == (3, Finish(1, ()))


def test_an_order_of_its_own_is_followed_and_one_for_others_is_passed_by(store: Store) -> None:
    store.set_document(keys.order(0, 2), encode(OrderMessage(SCHEMA, "1", RecountOrder())))
    store.set_document(keys.order(1, 3), encode(OrderMessage(SCHEMA, "1", RecountOrder())))
    store.set_document(keys.step(0), b"own")
    store.set_document(keys.step(1), b"own")
    give(store, 2, Finish(0, ()))
    steps = reader(store)
    steps._is_further_rank = False
    assert steps.next(Deadline(5)) == (0, RecountOrder())
    assert steps.next(Deadline(5)) == (2, Finish(0, ()))
    assert refused_orders(store, {2: "node2"}) == ()


def test_after_a_refused_order_the_one_in_its_place_is_followed(store: Store) -> None:
    said: list[str] = []
    give(store, 0, EVIL)
    steps = reader(store, said)
    assert isinstance(steps.next(Deadline(0.2)), Missing)
    give(store, 0, RecountOrder())
    assert steps.next(Deadline(5)) == (0, RecountOrder())
    assert len(said) == 1
    assert "LD_PRELOAD" in said[0]
    (refused,) = refused_orders(store, {1: "node1", 2: "node2"})
    assert (refused.host, refused.subject) == ("node2", "order step 0")
    assert "LD_PRELOAD" in refused.reason


def test_after_a_refused_order_the_next_one_is_followed(store: Store) -> None:
    give(store, 0, EVIL)
    give(store, 1, Finish(0, ()))
    steps = reader(store)
    assert steps.next(Deadline(5)) == (1, Finish(0, ()))


def test_garbage_in_the_place_of_an_order_ends_with_the_deadline_and_the_reason(store: Store) -> None:
    store.set_document(keys.step(0), b"\x80\x04.")
    deadline = Deadline(10)
    lost = reader(store).next(Deadline(0.2))
    assert deadline.left() > 5
    assert isinstance(lost, Missing)
    assert "step 0 was refused before" in lost.detail


def test_a_key_that_is_no_document_is_refused_and_stops_nothing(store: Store) -> None:
    store.set(keys.step(0), b"no number of parts")
    steps = reader(store)
    assert isinstance(steps.next(Deadline(0.2)), Missing)
    give(store, 0, RecountOrder())
    assert steps.next(Deadline(5)) == (0, RecountOrder())


def test_node_0_gives_an_order_of_a_kind_once(store: Store) -> None:
    for number in range(3):
        give(store, number, RecountOrder())
    steps = reader(store)
    assert steps.next(Deadline(5)) == (0, RecountOrder())
    lost = steps.next(Deadline(0.3))
    assert isinstance(lost, Missing)
    assert "recount: given 2 times, and this node's own command asks for 1" in lost.detail


def bench_order(name: str) -> BenchOrder:
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 0, 2, 5.0, verify=True)
    return BenchOrder(plan, 2, ("node01", "node02"), {"2": 1}, {"2": 1}, {}, "n", 30.0, name)


@pytest.mark.parametrize(("tries", "accepted"), [(None, 1), (TryRequest(({"NCCL_ALGO": "Ring"},)), 3)])
def test_only_a_node_that_was_started_with_try_starts_several_sets_of_workers(
    store: Store, tries: TryRequest | None, accepted: int
) -> None:
    for number in range(3):
        give(store, number, bench_order(f"try-{number + 1}"))
    options = RunOptions("bench", bench=BenchRequest(tries=tries))
    context = Context(options, {}, launch(0, 2), "node01", Deadline(60), lambda _: None)
    steps = OrderReader(Participant(context, store, 2, ""))
    for number in range(accepted):
        assert steps.next(Deadline(5)) == (number, bench_order(f"try-{number + 1}"))
    assert isinstance(steps.next(Deadline(0.2)), Missing)
    told = {refused.reason for refused in refused_orders(store, {2: "node2"})}
    assert told == (set() if tries else {"bench: given 2 times, and this node's own command asks for 1"})


def test_of_many_refused_orders_some_are_told(store: Store) -> None:
    steps = reader(store)
    for number in range(3 * MOST_TOLD):
        give(store, 0, ConfirmOrder({"2": ({f"LD_{number}": "x"},)}, 5.0))
        steps.next(Deadline(0.0))
    assert len(refused_orders(store, {2: "node2"})) == MOST_TOLD


def test_what_a_node_tells_is_bounded_too(store: Store) -> None:
    store.set_document(keys.refused_orders(2), b"[]")
    (refused,) = refused_orders(store, {2: "node2"})
    assert refused.subject == "refused orders"
