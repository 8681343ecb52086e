"""The benchmark of a run: node 0 plans, watches and judges; every node starts and ends its own workers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from ncclcheck.bench import supervise
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.watch import RankState, all_done, has_started, judge
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, SCHEMA, Bench, read_message
from ncclcheck.exchange.store import TcpStore
from ncclcheck.model.bench import BenchPlan, BenchResult, Point, RankFailure
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.bench_network import Network, bench_network, transport_text
from ncclcheck.run.context import TOOL_VERSION, Context
from ncclcheck.run.lead import Member, Orders

POLL_S = 0.2
END_S = 6.0
KILL_S = 3.0
LEAST_S = 5.0  # less time than this is not worth starting workers for


class BenchState(Struct, frozen=True, forbid_unknown_fields=True):
    """What one node says of its workers; `points` is all that its rank 0 has finished so far."""

    schema_version: str
    tool_version: str
    sequence: int
    states: tuple[RankState, ...]
    points: tuple[Point, ...]


# A node's side


def run_local_bench(context: Context, store: TcpStore, ticket: int, order: Bench) -> None:
    """This node's workers run until node 0 says stop, or cannot be asked any more; then none is left."""
    deadline = context.deadline.within(order.deadline_s)
    first = order.first_rank.get(str(ticket), 0)
    tasks = [
        WorkerTask(
            rank=first + local,
            world_size=order.world_size,
            local_rank=local,
            store_host=context.launch.master_addr or "127.0.0.1",
            store_port=store.port,
            store_prefix=f"{context.prefix}group/{order.nonce}",
            plan=order.plan,
            hosts=order.hosts,
        )
        for local in range(order.count.get(str(ticket), 0))
    ]
    running = supervise.start(tasks, order.environments.get(str(ticket), {}))
    points: list[Point] = []
    sequence = 0
    try:
        while not deadline.passed and store.lost is None:
            new, states = running.poll()
            points += new
            sequence += 1
            message = BenchState(SCHEMA, TOOL_VERSION, sequence, states, tuple(points))
            store.set(f"bench/state/{ticket}", encode(message))
            if not isinstance(store.get("bench/stop"), Missing):
                break
            time.sleep(POLL_S)
    finally:
        undead = running.stop(KILL_S)
        store.set_document(f"bench/done/{ticket}", encode(undead))


# Node 0's side


def lead_bench(
    context: Context,
    orders: Orders,
    store: TcpStore,
    agents: tuple[Member, ...],
    snapshot: Snapshot,
    deadline: Deadline,
    keep: Callable[[BenchResult], None],
) -> Fact[BenchResult]:
    """The result, whatever became of it; Missing where it could not be started. `keep` gets each partial result."""
    if snapshot.silent:
        absent = ", ".join(sorted({one.host for one in snapshot.silent}))
        return Missing("unsupported", f"a benchmark needs all nodes; silent: {absent}")
    if len({one.launch.node_rank for one in agents}) != len(agents):
        return Missing("unsupported", "node ranks clash, so no group can be formed")
    if deadline.left() < LEAST_S:
        return Missing("timeout", f"{deadline.left():.0f} s were left of --timeout")
    network = bench_network(context.options, snapshot)
    if isinstance(network, Missing):
        return network
    order = _order(context, agents, network, deadline)
    context.say(f"measuring with {order.world_size} ranks over {transport_text(network)}")
    orders.give(order)
    watch = _Watch(context, store, agents, order, network, keep)
    try:
        return watch.until(deadline)
    finally:
        store.set("bench/stop", b"1")
        gather_answers(
            store, [one.ticket for one in agents], lambda ticket: f"bench/done/{ticket}", Deadline(END_S)
        )


def _order(context: Context, agents: tuple[Member, ...], network: Network, deadline: Deadline) -> Bench:
    request = context.options.bench
    counts = {str(one.ticket): network.ranks_of[one.host] for one in agents}
    first_rank: dict[str, int] = {}
    hosts: list[str] = []
    for one in agents:
        first_rank[str(one.ticket)] = len(hosts)
        hosts += [one.host] * counts[str(one.ticket)]
    plan = BenchPlan(
        backend=network.backend,
        ops=request.ops,
        sizes_bytes=request.sizes_bytes,
        dtype=request.dtype,
        warmup=request.warmup,
        iters=request.iters,
        budget_s=min(request.budget_s, max(1.0, deadline.left() / 2)),
        verify=request.verify,
    )
    environments = {str(one.ticket): network.environment_of.get(one.host, {}) for one in agents}
    return Bench(
        plan,
        len(hosts),
        tuple(hosts),
        first_rank,
        counts,
        environments,
        secrets.token_hex(8),
        deadline.left(),
    )


class _Watch:
    """What is known of a running benchmark. State: each node's last word and when it came."""

    def __init__(
        self,
        context: Context,
        store: TcpStore,
        agents: tuple[Member, ...],
        order: Bench,
        network: Network,
        keep: Callable[[BenchResult], None],
    ) -> None:
        self._context, self._store, self._agents, self._order = context, store, agents, order
        self._network, self._keep = network, keep
        self._last: dict[int, tuple[BenchState, float]] = {}
        self._started = time.monotonic()
        self._points: tuple[Point, ...] = ()

    def until(self, deadline: Deadline) -> BenchResult:
        """The result once every rank is done, somebody spoiled the run, or the deadline passed."""
        while True:
            self._read()
            if all_done(self._states(), self._order.world_size):
                return self._result(())
            failures = judge(self._states(), self._order.hosts, self._unheard_s())
            if failures or deadline.passed or self._store.lost is not None:
                return self._result(failures)
            time.sleep(POLL_S / 2)

    def _read(self) -> None:
        for one in self._agents:
            data = self._store.get(f"bench/state/{one.ticket}")
            if isinstance(data, Missing):
                continue
            try:
                message = read_message(data, BenchState, FACTS_LIMIT_BYTES)
            except DecodeError as error:
                self._context.say(f"a word of {one.host} about its workers was refused: {error}")
                continue
            known = self._last.get(one.ticket)
            if known is None or message.sequence != known[0].sequence:
                self._last[one.ticket] = (message, time.monotonic())
                self._notice(message.points)

    def _notice(self, points: tuple[Point, ...]) -> None:
        if len(points) > len(self._points):
            self._points = points
            latest = points[-1]
            self._context.say(
                f"{latest.op} {latest.size_bytes} B: bus bandwidth {latest.busbw_gb_s:.3f} GB/s"
            )
            self._keep(self._result(()))

    def _states(self) -> list[RankState]:
        return [state for message, _ in self._last.values() for state in message.states]

    def _unheard_s(self) -> Mapping[str, float]:
        now = time.monotonic()
        return {
            one.host: now - (self._last[one.ticket][1] if one.ticket in self._last else self._started)
            for one in self._agents
        }

    def _result(self, failures: tuple[RankFailure, ...]) -> BenchResult:
        order, network = self._order, self._network
        return BenchResult(
            backend=network.backend,
            world_size=order.world_size,
            nodes=len(self._agents),
            plan=order.plan,
            transport=transport_text(network),
            points=self._points,
            failures=failures,
            started=has_started(self._states(), order.world_size) or bool(self._points),
            environment=network.environment_of,
        )
