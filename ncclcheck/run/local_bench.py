"""A node's side of a benchmark: its workers, started, watched and ended as node 0 says."""

from __future__ import annotations

import errno
import time
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench import supervise
from ncclcheck.bench.footprint import memory_needed, shortage
from ncclcheck.bench.free_memory import free_bytes
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.watch import RankState, place
from ncclcheck.exchange.messages import SCHEMA, Bench
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.bench import Isolation, NodeLog, Point
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.nccl.settable import first_refusal
from ncclcheck.run.context import TOOL_VERSION, Context

POLL_S = 0.1
KILL_S = 3.0
Left: TypeAlias = Literal["", "interrupted", "timeout"]


class BenchState(Struct, frozen=True, forbid_unknown_fields=True):
    """What one node says of its workers, small enough for one packet.

    `points`: how many points its rank 0 has finished; each stands in a document of its own. `left`: why the node
    ended its workers though nobody told it to.
    """

    schema_version: str
    tool_version: str
    sequence: int
    states: tuple[RankState, ...]
    points: int
    left: Left = ""


def run_local_bench(context: Context, store: Store, ticket: int, orders: Sequence[Bench]) -> Missing | None:
    """This node's workers run until node 0 says stop, or cannot be asked any more; then none is left.

    Missing if it was lost, with where the ranks of this node were then.
    """
    sets = [_Workers(context, store, ticket, order) for order in orders]
    left: Left = "interrupted"
    try:
        for one in sets:
            one.start()
        while store.lost is None and any(one.running for one in sets):
            for one in sets:
                one.look()
            time.sleep(POLL_S)
        left = ""
    finally:
        for one in sets:
            one.end(left)
    if store.lost is None:
        return None
    where = "; ".join(filter(None, (one.where for one in sets)))
    return replace(store.lost, detail=f"{store.lost.detail}; {where}" if where else store.lost.detail)


class _Workers:
    """This node's workers of one order. State: whether they run, and what was said of them to node 0."""

    def __init__(self, context: Context, store: Store, ticket: int, order: Bench) -> None:
        self._store, self._ticket, self._order = store, ticket, order
        self._deadline = context.deadline.within(order.deadline_s)
        self._tasks = _tasks(context, store, ticket, order)
        self._word = _Word(store, ticket, order.name)
        self._running: supervise.Running | None = None
        self._states: tuple[RankState, ...] = ()

    @property
    def running(self) -> bool:
        """There are workers to be ended."""
        return self._running is not None

    @property
    def where(self) -> str:
        """Where its ranks were last seen: "rank 2 was in all_reduce 64M, iteration 3"."""
        return ", ".join(f"rank {state.rank} was in {place(state)}" for state in self._states)

    def start(self) -> None:
        """The workers run, or node 0 knows why not."""
        try:
            _refuse_without_memory(self._order, len(self._tasks))
            environment = self._order.environments.get(str(self._ticket), {})
            _refuse_settings(environment)
            self._running = supervise.start(self._tasks, environment)
        except OSError as error:
            self._word.say(supervise.not_started(self._tasks, error))
            self._store.set_document(keys.bench_done(self._order.name, self._ticket), encode(()))

    def look(self) -> None:
        """Node 0 knows how the workers are doing; they are ended where it says stop, or their time is over."""
        if self._running is None:
            return
        points, states = self._running.poll()
        self._states = states
        self._word.say(states, points, isolation=self._running.isolation)
        if not isinstance(self._store.get(keys.bench_stop(self._order.name)), Missing):
            self.end("")
        elif self._deadline.passed:
            self.end("timeout")

    def end(self, left: Left) -> None:
        """None of the workers is left, and node 0 knows it, and why where it did not say so itself."""
        if self._running is None:
            return
        undead = self._running.stop(KILL_S)
        if self._order.plan.backend == "nccl":
            log = encode(NodeLog("", self._running.transport))
            self._store.set_document(keys.bench_log(self._order.name, self._ticket), log)
        self._running = None
        if left:
            self._word.say((), left=left)
        self._store.set_document(keys.bench_done(self._order.name, self._ticket), encode(undead))


def _tasks(context: Context, store: Store, ticket: int, order: Bench) -> list[WorkerTask]:
    first = order.first_rank.get(str(ticket), 0)
    return [
        WorkerTask(
            rank=first + local,
            world_size=order.world_size,
            local_rank=local,
            store_host=context.launch.master_addr or "127.0.0.1",
            store_port=store.port,
            store_prefix=keys.bench_group(context.prefix, order.nonce),
            plan=order.plan,
            hosts=order.hosts,
            turns=order.name if order.turns else None,
            turns_prefix=context.prefix,
        )
        for local in range(order.count.get(str(ticket), 0))
    ]


def _refuse_settings(environment: Mapping[str, str | None]) -> None:
    """Nothing, if a message may make all of these settings. OSError."""
    reason = first_refusal(environment)
    if reason is not None:
        raise OSError(errno.EPERM, reason)


def _refuse_without_memory(order: Bench, ranks: int) -> None:
    """Nothing, if the plan fits what is free here: else the kernel would kill somebody, perhaps not us. OSError."""
    need = memory_needed(order.plan, order.world_size) * ranks
    free = free_bytes()
    if order.plan.backend == "gloo" and need > free:
        raise OSError(
            errno.ENOMEM, shortage(order.plan, order.world_size, ranks, free, "and what is free here is")
        )


class _Word:
    """A node's words to node 0. State: their number, and how many points were handed over."""

    def __init__(self, store: Store, ticket: int, name: str) -> None:
        self._store, self._ticket, self._name = store, ticket, name
        self._sequence, self._points = 0, 0
        self._isolated = False

    def say(
        self,
        states: tuple[RankState, ...],
        points: Sequence[Fact[Point]] = (),
        left: Left = "",
        isolation: Isolation | None = None,
    ) -> None:
        """Node 0 can read the states; what grows with the number of ranks was written before."""
        if isolation is not None and not self._isolated:
            self._store.set_document(keys.bench_isolation(self._name), encode(isolation))
            self._isolated = True
        for point in points:
            self._store.set_document(keys.bench_point(self._name, self._points), encode(point))
            self._points += 1
        self._sequence += 1
        message = BenchState(SCHEMA, TOOL_VERSION, self._sequence, states, self._points, left)
        self._store.set(keys.bench_state(self._name, self._ticket), encode(message))
