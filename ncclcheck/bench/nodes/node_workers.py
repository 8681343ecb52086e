"""A node's side of a benchmark: its workers, started, watched and ended as node 0 says."""

from __future__ import annotations

import errno
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench import supervise
from ncclcheck.bench.culprits import RankState, place
from ncclcheck.bench.footprint import memory_needed, shortage
from ncclcheck.bench.nodes.bench_order import BLOCKS_KEPT, BenchOrder, BenchState, Left
from ncclcheck.bench.nodes.hang_evidence import HangWatch
from ncclcheck.bench.task import WorkerTask
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.facts.host.free_memory import free_bytes
from ncclcheck.model.bench import Isolation, NodeLog, Point
from ncclcheck.model.benchmarks.mesh_bench import MeshBench
from ncclcheck.model.benchmarks.soak import SoakBlock
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.nccl.settable import first_refusal
from ncclcheck.timeouts import KILL_GPU_WORKERS_S, KILL_WORKERS_S, WORKERS_POLL_S


class WorkerNode(Struct, frozen=True):
    """The node that the workers run on, as its part in the run knows it.

    `prefix`: of the run's keys in its store. `local_rank`: of this process, where its node has several; that of the
    first worker it starts.
    """

    store: Store
    ticket: int
    master_addr: str
    prefix: str
    deadline: Deadline
    local_rank: int = 0


def run_workers(node: WorkerNode, orders: Sequence[BenchOrder]) -> Missing | None:
    """Run this node's workers until node 0 says stop, or cannot be asked any more; then none is left.

    Return Missing if node 0 was lost, with where the ranks of this node were then.
    """
    store = node.store
    sets = [_Workers(node, order) for order in orders]
    left: Left = "interrupted"
    try:
        for workers in sets:
            workers.start()
        while store.lost is None and any(workers.running for workers in sets):
            for workers in sets:
                workers.look()
            time.sleep(WORKERS_POLL_S)
        left = ""
    finally:
        for workers in sets:
            workers.end(left)
    if store.lost is None:
        return None
    where = "; ".join(filter(None, (workers.where for workers in sets)))
    return replace(store.lost, detail=f"{store.lost.detail}; {where}" if where else store.lost.detail)


class _Workers:
    """This node's workers of one order. State: whether they run, and what was reported to node 0."""

    def __init__(self, node: WorkerNode, order: BenchOrder) -> None:
        self._store, self._ticket, self._order = node.store, node.ticket, order
        self._deadline = node.deadline.within(order.deadline_s)
        self._tasks = _tasks(node, order)
        self._word = _Word(node.store, node.ticket, order.name)
        self._running: supervise.Running | None = None
        self._states: tuple[RankState, ...] = ()
        is_asked = order.plan.backend == "nccl" and any(task.rank == 0 for task in self._tasks)
        self._hang = HangWatch(asks_ras=is_asked)

    @property
    def running(self) -> bool:
        """Return whether there are workers to be ended."""
        return self._running is not None

    @property
    def where(self) -> str:
        """Return where its ranks were last seen: "rank 2 was in all_reduce 64M, iteration 3"."""
        return ", ".join(f"rank {state.rank} was in {place(state)}" for state in self._states)

    def start(self) -> None:
        """Start the workers, or tell node 0 why not."""
        try:
            _refuse_without_memory(self._order, len(self._tasks))
            environment = self._order.environments.get(str(self._ticket), {})
            _refuse_settings(environment)
            self._running = supervise.start(self._tasks, {**environment, **self._hang.environment()})
        except OSError as error:
            self._word.say(supervise.not_started(self._tasks, error))
            self._store.set_document(keys.bench_done(self._order.name, self._ticket), encode(()))

    def look(self) -> None:
        """Tell node 0 how the workers are doing; end them where it says stop, or their time is over."""
        if self._running is None:
            return
        points, states = self._running.poll()
        self._states = states
        self._word.leave(self._running.isolation, self._running.mesh)
        self._word.say(states, points)
        self._hang.look(states)
        if not isinstance(self._store.get(keys.bench_stop(self._order.name)), Missing):
            self.end("")
        elif self._deadline.passed:
            self.end("timeout")

    def end(self, left: Left) -> None:
        """End all workers and tell node 0, with the reason where it did not say so itself."""
        if self._running is None:
            return
        on_nccl = self._order.plan.backend == "nccl"
        seen = self._hang.evidence(self._states) if on_nccl else None
        if left:  # first: node 0 would take a long silence for a lost node
            self._word.say((), left=left)
        undead = self._running.stop(KILL_GPU_WORKERS_S if on_nccl else KILL_WORKERS_S)
        if on_nccl:
            log = encode(NodeLog("", self._running.transport, seen))
            self._store.set_document(keys.bench_log(self._order.name, self._ticket), log)
        self._running = None
        self._store.set_document(keys.bench_done(self._order.name, self._ticket), encode(undead))


def _tasks(node: WorkerNode, order: BenchOrder) -> list[WorkerTask]:
    first = order.first_rank.get(str(node.ticket), 0)
    return [
        WorkerTask(
            rank=first + local,
            world_size=order.world_size,
            local_rank=node.local_rank + local,
            store_host=node.master_addr,
            store_port=node.store.port,
            store_prefix=keys.bench_group(node.prefix, order.nonce),
            plan=order.plan,
            hosts=order.hosts,
            turns=order.name if order.turns else None,
            turns_prefix=node.prefix,
            brief=order.brief,
        )
        for local in range(order.count.get(str(node.ticket), 0))
    ]


def _refuse_settings(environment: Mapping[str, str | None]) -> None:
    """Raise OSError where a message may not make one of these settings."""
    reason = first_refusal(environment)
    if reason is not None:
        raise OSError(errno.EPERM, reason)


def _refuse_without_memory(order: BenchOrder, ranks: int) -> None:
    """Raise OSError where the plan does not fit what is free: the kernel would kill a process, perhaps not ours."""
    need = memory_needed(order.plan, order.world_size) * ranks
    free = free_bytes()
    if order.plan.backend == "gloo" and need > free:
        raise OSError(
            errno.ENOMEM, shortage(order.plan, order.world_size, ranks, free, "and what is free here is")
        )


class _Word:
    """The reports of a node to node 0. State: the number of messages, and how many points were handed over."""

    def __init__(self, store: Store, ticket: int, name: str) -> None:
        self._store, self._ticket, self._name = store, ticket, name
        self._sequence, self._points = 0, 0
        self._left: set[str] = set()

    def leave(self, isolation: Isolation | None, mesh: MeshBench | None) -> None:
        """Write what is measured after the points, once it is known."""
        for key, found in (
            (keys.bench_isolation(self._name), isolation),
            (keys.bench_mesh(self._name), mesh),
        ):
            if found is not None and key not in self._left:
                self._store.set_document(key, encode(found))
                self._left.add(key)

    def say(
        self,
        states: tuple[RankState, ...],
        points: Sequence[Fact[Point | SoakBlock]] = (),
        left: Left = "",
    ) -> None:
        """Write the states; points and what grows with the number of ranks come first."""
        for point in points:
            is_block = isinstance(point, SoakBlock)
            number = self._points % BLOCKS_KEPT if is_block else self._points  # a soak may have a million
            self._store.set_document(keys.bench_point(self._name, number), encode(point))
            self._points += 1
        self._sequence += 1
        message = BenchState(SCHEMA, TOOL_VERSION, self._sequence, states, self._points, left)
        self._store.set(keys.bench_state(self._name, self._ticket), encode(message))
