"""What the tests of benchmarks share: a store, the words of nodes, and nodes that say them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from ncclcheck.bench.culprits import RankState
from ncclcheck.bench.nodes.bench_order import BenchOrder, BenchState, Left
from ncclcheck.bench.nodes.bench_watch import Watched
from ncclcheck.bench.nodes.node_workers import WorkerNode
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import join
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.run.context import Context
from ncclcheck.run.options import RunOptions
from ncclcheck.run.session import Joining, Session
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.base import Bounds
from ncclcheck.run.steps.sequence import read_order
from tests.bench_builders import bench_point
from tests.fact_builders import answer, launch, some

POINT = bench_point(1 << 20, (1.0, 2.0))
REQUEST = BenchRequest((1 << 10,), ("all_reduce",), "gloo", iters=2, warmup=1, budget_s=5.0)
AGENTS = tuple(Member(rank + 11, launch(rank, 2), f"node0{rank + 1}") for rank in (0, 1))
SMALL = 1 << 20


def rank(number: int, **changes: Any) -> RankState:
    """A rank that measured everything."""
    done = RankState(
        rank=number, host=f"node0{number + 1}", pid=4000 + number, stat="S", exit_code=None, ended_s=0.0,
        phase="done", op="all_reduce", size_bytes=1 << 20, iteration=3, inside=False, calls=20,
        idle_s=0.1, longest_call_s=0.1,
    )  # fmt: skip
    return replace(done, **changes)


def word(*states: RankState, points: int = 0, sequence: int = 1, left: Left = "") -> bytes:
    return encode(BenchState(SCHEMA, TOOL_VERSION, sequence, states, points, left))


def client(server: Store, prefix: str) -> Store:
    found = join("127.0.0.1", server.port, prefix, Deadline(10))
    assert not isinstance(found, Missing)
    return found


def context(say: Callable[[str], None] = lambda _: None, **changes: Any) -> Context:
    options = RunOptions("bench", LaunchFlags(nproc_per_node=1), bench=replace(REQUEST, **changes))
    return Context(options, {}, launch(0, 2), "node01", Deadline(60), say)


def session(
    store: Store,
    snapshot: Snapshot,
    seconds: float = 30,
    agents: tuple[Member, ...] = AGENTS,
    at: Context | None = None,
) -> Session:
    """The coordinator's view of a run in which these agents reported, and all were reached."""
    state = RunState()
    state.snapshot, state.agents, state.reached = snapshot, agents, agents
    return Session(at or context(), store, state, Deadline(seconds), Joining(30.0))


def watched(
    store: Store, order: BenchOrder, network: BenchNetwork, say: Callable[[str], None] = lambda _: None
) -> Watched:
    return Watched(store, {agent.ticket: agent.host for agent in AGENTS}, order, network, say)


def worker_node(at: Context, store: Store, ticket: int) -> WorkerNode:
    return WorkerNode(store, ticket, at.launch.master_addr or "127.0.0.1", at.prefix, at.deadline)


def bench_order(data: bytes) -> BenchOrder:
    """The order to start workers, as a node of eight ranks reads it."""
    order = read_order(data, Bounds(11, 8))
    assert isinstance(order, BenchOrder)
    return order


class Nodes:
    """The nodes of a run, in a thread: they get the order, say their words, and end when they are told to."""

    def __init__(self, store: Store, words: Mapping[int, bytes], points: tuple[bytes, ...]) -> None:
        self.order: BenchOrder | None = None
        self.stopped = False
        self._store, self._words, self._points = store, words, points
        self._thread = threading.Thread(target=self._run, name="nodes", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        step = self._store.wait_document("step/0", Deadline(20))
        self.order = bench_order(some(step))
        for number, point in enumerate(self._points):
            self._store.set_document(f"bench/point/{number}", point)
        for ticket, text in self._words.items():
            self._store.set(f"bench/state/{ticket}", text)
        self.stopped = not isinstance(self._store.wait("bench/stop", Deadline(30)), Missing)
        for ticket in self._words:
            self._store.set_document(f"bench/done/{ticket}", b"[]")

    def order_once_ended(self) -> BenchOrder:
        self._thread.join(30)
        assert self.stopped  # whatever became of the run, the nodes were told to end their workers
        assert self.order is not None
        return self.order


def without_interface(snapshot: Snapshot, *hosts: str) -> Snapshot:
    """NCCL was asked on these hosts, and finds no interface."""

    def without(node: Node) -> Node:
        if node.host not in hosts:
            return node
        nccl = replace(some(node.facts.nccl), asked=answer(None, None))
        return replace(node, facts=replace(node.facts, nccl=nccl))

    return replace(snapshot, nodes=tuple(map(without, snapshot.nodes)))
