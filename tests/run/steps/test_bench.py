"""The benchmark of a run over a real store: node 0 orders it, and ends it whatever becomes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from ncclcheck.bench.culprits import DEADLINES
from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.bench.nodes.bench_watch import quick_deadlines
from ncclcheck.bench.nodes.node_workers import run_workers
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.bench import BenchPlan, BenchResult
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.session import Session
from ncclcheck.run.steps.bench import lead_bench, starting_of
from ncclcheck.timeouts import LEAST_BENCH_S
from tests.bench.nodes.benches import (
    AGENTS,
    POINT,
    Nodes,
    bench_order,
    client,
    context,
    rank,
    session,
    without_interface,
    word,
    worker_node,
)
from tests.bench.nodes.test_starting import AGENTS as TASKS
from tests.bench.nodes.test_starting import FURTHER, network
from tests.builders import cluster, with_outcome, with_silent
from tests.fact_builders import launch, some

Start = Callable[..., Nodes]


@pytest.fixture
def nodes(server: Store, prefix: str) -> Start:
    return lambda words, *points: Nodes(client(server, prefix), words, points)


def led(
    store: Store,
    snapshot: Snapshot | None = None,
    *,
    at: Context | None = None,
    agents: tuple[Member, ...] = AGENTS,
    seconds: float = 30,
) -> Fact[BenchResult]:
    return lead_bench(session(store, snapshot or cluster(2), seconds, agents, at))


@pytest.mark.slow
def test_a_run_ends_when_every_rank_is_done_and_its_points_are_kept_on_the_way(
    store: Store, nodes: Start
) -> None:
    there = nodes({11: word(rank(0), points=1), 12: word(rank(1))}, encode(POINT))
    said: list[str] = []
    deadline = Deadline(30)
    at = session(store, cluster(2), at=context(said.append))
    result = some(lead_bench(at))
    assert deadline.left() > 20
    assert (result.points, result.failures, result.started, result.world_size) == ((POINT,), (), True, 2)
    assert result.environment == {host: {"GLOO_SOCKET_IFNAME": "eth0"} for host in ("node01", "node02")}
    assert some(at.snapshot.bench).points == (POINT,)
    assert said[0].startswith("measuring with 2 ranks over gloo over TCP on eth0")
    assert said[1] == "all_reduce 1048576 B: bus bandwidth 1.500 GB/s"
    there.order_once_ended()


@pytest.mark.slow
def test_the_order_says_who_starts_which_ranks_and_how(store: Store, nodes: Start) -> None:
    there = nodes({11: word(rank(0)), 12: word(rank(1))})
    led(store, seconds=20)
    order = there.order_once_ended()
    assert (order.world_size, order.hosts) == (2, ("node01", "node02"))
    assert (order.first_rank, order.count) == ({"11": 0, "12": 1}, {"11": 1, "12": 1})
    assert order.environments == {ticket: {"GLOO_SOCKET_IFNAME": "eth0"} for ticket in ("11", "12")}
    assert (order.plan.ops, order.plan.sizes_bytes, order.plan.backend) == (
        ("all_reduce",),
        (1 << 10,),
        "gloo",
    )
    assert order.plan.budget_s == 5.0
    assert 0 < order.deadline_s <= 20


@pytest.mark.slow
def test_a_dead_rank_ends_the_run_by_name_and_what_was_measured_stays(store: Store, nodes: Start) -> None:
    running = {"phase": "measuring", "inside": True}
    there = nodes(
        {
            11: word(rank(0, **running), points=1),
            12: word(rank(1, **{**running, "exit_code": -9, "stat": ""})),
        },
        encode(POINT),
    )
    result = some(led(store))
    ((host, state),) = [(failure.host, failure.state) for failure in result.failures]
    assert (host, state) == ("node02", "died")
    assert result.points == (POINT,)
    there.order_once_ended()


@pytest.mark.slow
def test_at_the_deadline_the_run_ends_without_blaming_anybody(store: Store, nodes: Start) -> None:
    busy = {"phase": "measuring", "inside": True}
    there = nodes({11: word(rank(0, **busy)), 12: word(rank(1, **busy))})
    result = some(led(store, seconds=LEAST_BENCH_S + 1.0))
    assert (result.failures, result.points, result.started) == ((), (), True)
    assert "--timeout was over after 0 of 1 points, in all_reduce 1M, iteration 3" in result.unfinished
    there.order_once_ended()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("snapshot", "seconds", "why"),
    [
        (with_silent(cluster(3), "node03"), 30.0, "needs all nodes; silent: node03"),
        (replace(cluster(2), claims=(launch(0, 2),) * 2), 30.0, "node ranks clash"),
        (cluster(2), LEAST_BENCH_S - 1, "4 s were left of --timeout"),
        (
            with_outcome(cluster(2), "filtered", [("node01", "node02"), ("node02", "node01")]),
            30.0,
            "no interface on which all nodes can connect",
        ),
    ],
    ids=["silent", "clash", "late", "unreached"],
)
def test_what_cannot_be_measured_is_refused_before_anybody_starts(
    store: Store, snapshot: Snapshot, seconds: float, why: str
) -> None:
    result = led(store, snapshot, seconds=seconds)
    assert isinstance(result, Missing)
    assert why in result.detail
    for key in ("step/0", "bench/stop"):
        assert isinstance(store.get(key), Missing)


@pytest.mark.slow
def test_node_0_and_its_own_worker_measure_together(server: Store, prefix: str, store: Store) -> None:
    place = replace(launch(0, 1), nproc_per_node=1)
    at = replace(context(), launch=place)
    theirs = client(server, prefix)

    def follow() -> None:
        order = bench_order(some(theirs.wait_document("step/0", Deadline(20))))
        run_workers(worker_node(at, theirs, 11), [order])

    node = threading.Thread(target=follow, name="node", daemon=True)
    node.start()
    snapshot = cluster(1)
    snapshot = replace(
        snapshot,
        nodes=(replace(snapshot.nodes[0], facts=replace(snapshot.nodes[0].facts, launch=place)),),
    )
    result = some(led(store, snapshot, at=at, agents=(Member(11, place, "node01"),), seconds=60))
    node.join(30)
    assert not node.is_alive()
    assert result.failures == ()
    assert [(point.op, point.size_bytes, point.iters, point.wrong) for point in result.points] == [
        ("all_reduce", 1 << 10, 2, 0)
    ]
    assert store.get_document("bench/done/11") == b"[]"


@pytest.mark.slow
def test_where_nccl_finds_no_interface_as_it_is_that_is_the_result_and_nobody_starts(store: Store) -> None:
    result = some(led(store, without_interface(cluster(2), "node02"), at=context(under="as-is")))
    ((failed,), points, started) = (result.failures, result.points, result.started)
    assert (failed.rank, failed.host, failed.state, failed.where) == (
        1,
        "node02",
        "error",
        "choosing a network interface",
    )
    assert "no socket interface found" in failed.detail
    assert (points, started) == ((), False)
    assert isinstance(store.get("step/0"), Missing)


def test_where_torch_is_broken_that_is_the_reason_and_no_rank_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise ImportError('libcudart.so.13: no such file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    store = within_process(MemoryBackend(), 0)
    agent = Member(1, replace(launch(0, 1), world_size=1), "node01")
    side = threading.Thread(target=_follow, args=(store, 1), daemon=True)
    side.start()
    result = led(store, cluster(1), agents=(agent,))
    side.join(20)
    assert result == Missing("error", "torch cannot be imported: ImportError: libcudart.so.13: no such file")


def _follow(store: Store, ticket: int) -> None:
    order = bench_order(some(store.wait_document("step/0", Deadline(20))))
    run_workers(worker_node(context(), store, ticket), [order])


def test_a_job_as_it_is_gets_less_patience_and_more_where_more_has_to_come_together() -> None:
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 10,), "float32", 1, 2, 5.0, verify=True)
    order = BenchOrder(plan, 2, ("node01", "node02"), {}, {}, {}, "n", 30.0)
    small = quick_deadlines(order).join_s
    assert small < 10 < DEADLINES.join_s
    assert quick_deadlines(replace(order, world_size=512)).join_s > small
    assert quick_deadlines(replace(order, plan=replace(plan, backend="nccl"))).join_s >= 20


@pytest.mark.parametrize("meet_in", [None, "/shared"])
def test_each_launched_process_starts_its_own_rank_also_where_they_meet_in_a_folder(
    meet_in: str | None,
) -> None:
    options = SimpleNamespace(meet_in=meet_in, head=None)
    session = SimpleNamespace(
        agents=TASKS, state=SimpleNamespace(further=FURTHER), context=SimpleNamespace(options=options)
    )
    found = starting_of(cast("Session", session), network(2))
    assert [(process.member.ticket, process.ranks) for process in found] == [(1, 1), (2, 1), (4, 1), (7, 1)]
