"""The benchmark of a run: node 0 plans, watches and judges; every node starts and ends its own workers."""

from __future__ import annotations

import errno
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench import supervise
from ncclcheck.bench.collectives import memory_needed
from ncclcheck.bench.memory import free_bytes
from ncclcheck.bench.task import WorkerTask
from ncclcheck.bench.watch import (
    AT_THE_END,
    DEADLINES,
    RankState,
    all_done,
    has_started,
    judge,
    left_early,
    place,
)
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import (
    FACTS_LIMIT_BYTES,
    REPORT_LIMIT_BYTES,
    SCHEMA,
    Bench,
    read_message,
)
from ncclcheck.exchange.store import TcpStore
from ncclcheck.model.bench import BenchPlan, BenchResult, Point, RankFailure
from ncclcheck.model.codec import decode, encode
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
LATEST_S = 2.0  # of the run's own time, kept for the verdict when nodes are waited for at the end
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
    word = _Word(store, ticket)
    try:
        _refuse_without_memory(order, len(tasks))
        running = supervise.start(tasks, order.environments.get(str(ticket), {}))
    except OSError as error:
        word.say(supervise.not_started(tasks, error))
        store.set_document(f"bench/done/{ticket}", encode(()))
        return
    left: Left = "interrupted"
    try:
        left = _watch_workers(running, word, store, deadline)
    finally:
        undead = running.stop(KILL_S)
        if left:
            word.say((), left=left)
        store.set_document(f"bench/done/{ticket}", encode(undead))


def _refuse_without_memory(order: Bench, ranks: int) -> None:
    """Nothing, if the plan fits what is free here: else the kernel would kill somebody, perhaps not us. OSError."""
    need = memory_needed(order.plan, order.world_size) * ranks
    free = free_bytes()
    if order.plan.backend == "gloo" and need > free:
        text = f"{need / 1e9:.1f} GB of memory needed for {ranks} ranks, {free / 1e9:.1f} GB free: give smaller --sizes"
        raise OSError(errno.ENOMEM, text)


def _watch_workers(running: supervise.Running, word: _Word, store: TcpStore, deadline: Deadline) -> Left:
    """Tell node 0 how the workers are doing until it says stop ("") or the time is over."""
    while store.lost is None:
        points, states = running.poll()
        word.say(states, points)
        if not isinstance(store.get("bench/stop"), Missing):
            return ""
        if deadline.passed:
            return "timeout"
        time.sleep(POLL_S)
    return ""


class _Word:
    """A node's words to node 0. State: their number, and how many points were handed over."""

    def __init__(self, store: TcpStore, ticket: int) -> None:
        self._store, self._ticket, self._sequence, self._points = store, ticket, 0, 0

    def say(self, states: tuple[RankState, ...], points: Sequence[Point] = (), left: Left = "") -> None:
        """Node 0 can read the states; each new point, which grows with the number of ranks, was written before."""
        for point in points:
            self._store.set_document(f"bench/point/{self._points}", encode(point))
            self._points += 1
        self._sequence += 1
        message = BenchState(SCHEMA, TOOL_VERSION, self._sequence, states, self._points, left)
        self._store.set(f"bench/state/{self._ticket}", encode(message))


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
    ranks = [claim.node_rank for claim in snapshot.claims if claim.is_agent]
    if len(set(ranks)) != len(ranks):
        return Missing("unsupported", "node ranks clash, so no group can be formed")
    if deadline.left() < LEAST_S:
        return Missing("timeout", f"{deadline.left():.0f} s were left of --timeout")
    network = bench_network(context.options, snapshot)
    if isinstance(network, Missing):
        return network
    order = _order(context, agents, network, deadline)
    if (too_large := _too_large(order, network, snapshot)) is not None:
        return too_large
    context.say(f"measuring with {order.world_size} ranks over {transport_text(network)}")
    orders.give(order)
    watch = _Watch(context, store, agents, order, network, keep)
    try:
        return watch.until(deadline)
    except KeyboardInterrupt:
        keep(watch.result((), "interrupted"))
        raise
    finally:
        store.set("bench/stop", b"1")
        patience = Deadline(min(END_S, max(LATEST_S, context.deadline.left() - LATEST_S)))
        gather_answers(store, watch.speaking(), lambda ticket: f"bench/done/{ticket}", patience)


def _too_large(order: Bench, network: Network, snapshot: Snapshot) -> Missing | None:
    """Why the plan cannot fit the memory of a node, going by all that is built in; None where it may."""
    need = memory_needed(order.plan, order.world_size)
    for node in snapshot.nodes:
        gpus, limits = node.facts.gpus, node.facts.limits
        if order.plan.backend == "nccl":
            sizes = [] if isinstance(gpus, Missing) else [gpu.memory_bytes for gpu in gpus]
            has = min((one for one in sizes if not isinstance(one, Missing)), default=None)
            each, whose = need, "a GPU"
        else:
            total = limits if isinstance(limits, Missing) else limits.mem_total_kib
            has = None if isinstance(total, Missing) else total * 1024
            each, whose = need * network.ranks_of[node.host], "the memory"
        if has is not None and each > has:
            detail = f"the largest of --sizes needs {each / 1e9:.1f} GB, {whose} of {node.host} has {has / 1e9:.1f} GB"
            return Missing("unsupported", f"{detail}: give smaller --sizes")
    return None


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
        self._complaints: set[str] = set()

    def until(self, deadline: Deadline) -> BenchResult:
        """The result once every rank is done, somebody spoiled the run, or the time of a node is over."""
        addresses = {address: host for host, (_, address) in self._network.binding.items()}
        while True:
            self._read()
            states = self._states()
            if all_done(states, self._order.world_size):
                return self.result(())
            patience = AT_THE_END if deadline.passed else DEADLINES
            failures = self._interrupted() or judge(
                states, self._order.hosts, self._unheard_s(), patience, addresses
            )
            if failures:
                return self.result(failures)
            if over := self._over(deadline):
                return self.result((), over)
            time.sleep(POLL_S / 2)

    def speaking(self) -> list[int]:
        """The tickets of the nodes that still speak: they can be waited for."""
        unheard_s = self._unheard_s()
        return [one.ticket for one in self._agents if unheard_s[one.host] < DEADLINES.quiet_s]

    def _interrupted(self) -> tuple[RankFailure, ...]:
        hosts = {one.host for one in self._agents if self._left(one) == "interrupted"}
        ranks = enumerate(self._order.hosts)
        return tuple(left_early(rank, host, self._states()) for rank, host in ranks if host in hosts)

    def _left(self, one: Member) -> Left:
        return self._last[one.ticket][0].left if one.ticket in self._last else ""

    def _over(self, deadline: Deadline) -> str:
        """Why no more can be waited for though nobody is to blame; empty while there is time."""
        if self._store.lost is not None:
            return f"the store was lost: {self._store.lost}"
        early = [one.host for one in self._agents if self._left(one) == "timeout"]
        if not early and not deadline.passed:
            return ""
        at = min(self._states(), key=lambda state: state.calls, default=None)
        where = f", in {place(at)}" if at is not None else ""
        whose = f" of {', '.join(early)}" if early else ""
        total = len(self._order.plan.ops) * len(self._order.plan.sizes_bytes)
        return (
            f"--timeout{whose} was over after {len(self._points)} of {total} points{where}: "
            "give a longer one, fewer sizes or iterations"
        )

    def _read(self) -> None:
        for one in self._agents:
            data = self._store.get(f"bench/state/{one.ticket}")
            if isinstance(data, Missing):
                continue
            try:
                message = read_message(data, BenchState, FACTS_LIMIT_BYTES)
            except DecodeError as error:
                self._complain(f"a word of {one.host} about its workers was refused: {error}")
                continue
            known = self._last.get(one.ticket)
            if known is None or message.sequence != known[0].sequence:
                self._last[one.ticket] = (self._with_last_states(message, known), time.monotonic())
                self._read_points(message.points)

    @staticmethod
    def _with_last_states(message: BenchState, known: tuple[BenchState, float] | None) -> BenchState:
        """A node that left says no more where its ranks are: they are where they were."""
        return replace(message, states=known[0].states) if message.left and known else message

    def _read_points(self, count: int) -> None:
        while len(self._points) < count:
            data = self._store.get_document(f"bench/point/{len(self._points)}")
            if isinstance(data, Missing):
                return
            try:
                point = decode(data, Point, limit_bytes=REPORT_LIMIT_BYTES)
            except DecodeError as error:
                self._complain(f"a point of the benchmark was refused: {error}")
                return
            self._points = (*self._points, point)
            self._context.say(f"{point.op} {point.size_bytes} B: bus bandwidth {point.busbw_gb_s:.3f} GB/s")
            self._keep(self.result(()))

    def _complain(self, text: str) -> None:
        """Said once: what was refused lies in the store for the next look, too."""
        if text not in self._complaints:
            self._complaints.add(text)
            self._context.say(text)

    def _states(self) -> list[RankState]:
        return [state for message, _ in self._last.values() for state in message.states]

    def _unheard_s(self) -> Mapping[str, float]:
        now = time.monotonic()
        return {
            one.host: now - (self._last[one.ticket][1] if one.ticket in self._last else self._started)
            for one in self._agents
        }

    def result(self, failures: tuple[RankFailure, ...], unfinished: str = "") -> BenchResult:
        """What there is up to now."""
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
            unfinished=unfinished,
        )
