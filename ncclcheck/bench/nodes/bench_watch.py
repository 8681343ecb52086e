"""What node 0 knows of a running benchmark: what the nodes say of their workers, and which rank failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.culprits import (
    AT_THE_END,
    DEADLINES,
    Deadlines,
    RankState,
    all_done,
    has_started,
    judge,
    left_early,
    on_gpus,
    place,
    process_lost,
)
from ncclcheck.bench.nodes.bench_order import BenchOrder, BenchState, Left
from ncclcheck.bench.nodes.hang_evidence import culprits
from ncclcheck.bench.nodes.kernel_answers import KernelAnswers
from ncclcheck.bench.nodes.word_times import WordTimes
from ncclcheck.bench.silence import Network
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, REPORT_LIMIT_BYTES, read_message
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.rank_memory import refusals
from ncclcheck.measure.remaining import TimeLeft, seconds_left
from ncclcheck.model.bench import BenchResult, Isolation, NodeLog, Point, RankFailure
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.mesh_bench import MeshBench
from ncclcheck.model.codec import decode, decode_fact
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.timeouts import WORKERS_POLL_S

T = TypeVar("T")
NOTHING = Snapshot(nodes=())
_BEFORE = ("starting", "joining")  # phases before a rank measures


class Watched(Struct, frozen=True):
    """A benchmark to watch: the run's store, the host of every ticket, the order, and where progress goes.

    `say` writes one line of progress for people, `show` how far it is. `snapshot`: what is known of the nodes.
    """

    store: Store
    hosts: Mapping[int, str]
    order: BenchOrder
    network: BenchNetwork
    say: Callable[[str], None] = lambda _: None
    show: Callable[[TimeLeft], None] = lambda _: None
    snapshot: Snapshot = NOTHING


class BenchWatch:
    """What is known of a running benchmark. State: each node's last message and its time."""

    def __init__(
        self,
        watched: Watched,
        keep: Callable[[BenchResult], None] = lambda _: None,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        self._store, self._hosts, self._order = watched.store, watched.hosts, watched.order
        self._network, self._say, self._show = watched.network, watched.say, watched.show
        self._keep = keep
        self._deadlines = on_gpus(deadlines) if watched.order.plan.backend == "nccl" else deadlines
        self._addresses = {address: host for host, (_, address) in watched.network.binding.items()}
        self._kernels = KernelAnswers(
            {host: address for host, (_, address) in watched.network.binding.items()}
        )
        self._last: dict[int, BenchState] = {}
        self._times = WordTimes(time.monotonic())
        self._undead: tuple[str, ...] = ()
        self._unsaid = ""
        self._unreadable = ""  # what stands in the place of a node's words
        self._points: tuple[Point, ...] = ()
        self._refused: dict[int, str] = {}  # number of a point that the backend refused -> why
        self._complaints: set[str] = set()
        self._measuring_since: float | None = None
        self._total = len(watched.order.plan.ops) * len(watched.order.plan.sizes_bytes)  # points of the plan

    def until(self, deadline: Deadline) -> BenchResult:
        """Return the result once every rank is done, a rank failed, or the time of a node is over."""
        while True:
            failures = self.look(AT_THE_END if deadline.passed else self._deadlines)
            if all_done(self.states(), self._order.world_size):
                return self.result(())
            if failures:  # who is silent may have said what somebody else overwrote
                return self.result((), self._unreadable) if self._unreadable else self.result(failures)
            if over := self.over(deadline):
                return self.result((), "" if self._is_measured() else over)
            self._show(self.standing())
            time.sleep(WORKERS_POLL_S / 2)

    def standing(self) -> TimeLeft:
        """Return how far it is, and about how long it will still take."""
        states = self.states()
        finished = len(self._points) + len(self._refused)
        measuring = [state for state in states if state.phase not in _BEFORE]
        if not measuring or len(measuring) < len(states):
            late = [state for state in states if state.phase in _BEFORE]
            where = place(late[0]) if late else "the workers start"
            return TimeLeft(where, finished, self._total, None)
        if self._measuring_since is None:
            self._measuring_since = time.monotonic()
        front = max(measuring, key=lambda state: state.calls)
        iteration = front.iteration if front.phase in ("measuring", "agreeing") else 0
        elapsed_s = time.monotonic() - self._measuring_since
        left_s = seconds_left(self._order.plan, finished, iteration, elapsed_s)
        return TimeLeft(place(front), finished, self._total, left_s)

    def look(self, deadlines: Deadlines | None = None) -> tuple[RankFailure, ...]:
        """Read what the nodes say now, and return the ranks that failed by now."""
        self._times.look(time.monotonic())
        self._read()
        hosts, unheard_s = self._order.hosts, self._unheard_s()
        if all_done(self.states(), self._order.world_size):
            return ()
        limits = deadlines or self._deadlines
        # A broken connection accuses nobody before all nodes have spoken after it, also those not heard in a pause
        last_word_s = max(map(self._times.unsaid_s, self._hosts), default=0.0)
        limits = replace(limits, settle_s=max(limits.settle_s, last_word_s))
        known = self._interrupted() or self._lost_processes(limits)
        silent = [host for host in hosts[1:] if host != hosts[0] and unheard_s[host] >= limits.quiet_s]
        network = Network(self._addresses, self._kernels.look(silent))
        return known or judge(self.states(), hosts, unheard_s, limits, network)

    def speaking(self) -> list[int]:
        """Return the tickets of the nodes that still answer: they can be waited for."""
        return [ticket for ticket in self._hosts if self._times.silence_s(ticket) < DEADLINES.quiet_s]

    def stop(self) -> None:
        """Tell the nodes to end these workers."""
        self._store.set(keys.bench_stop(self._order.name), b"1")

    def done_key(self, ticket: int) -> str:
        """Return the key under which a node says that it has ended them."""
        return keys.bench_done(self._order.name, ticket)

    def await_end(self, deadline: Deadline) -> str:
        """Wait until the nodes that still answer have ended these workers; return what of them is left, or unknown.

        With gloo a node that does not say so in time is not counted: a process that is killed holds nothing for long.
        """
        speaking = self.speaking()
        answers = gather_answers(self._store, speaking, self.done_key, deadline)
        undead: list[str] = []
        for ticket, answer in answers.items():
            try:
                names = decode(answer, tuple[str, ...], limit_bytes=FACTS_LIMIT_BYTES)
            except DecodeError as error:
                names = (f"an unreadable list: {error}",)
            undead += [f"{name} on {self._hosts[ticket]}" for name in names]
        self._undead = tuple(undead)
        unsaid = [self._hosts[ticket] for ticket in speaking if ticket not in answers] if self.on_nccl else []
        self._unsaid = f"{', '.join(unsaid)} did not say that the workers ended there" if unsaid else ""
        died = f"SIGKILL did not end {', '.join(undead)}" if undead else ""
        return "; ".join(filter(None, (died, self._unsaid)))

    @property
    def on_nccl(self) -> bool:
        """Return whether the workers use GPUs."""
        return self._order.plan.backend == "nccl"

    def _interrupted(self) -> tuple[RankFailure, ...]:
        return tuple(
            left_early(rank, host, self.states())
            for ticket, host in self._hosts.items()
            if self._left(ticket) == "interrupted"
            for rank in self._ranks_of(ticket)
        )

    def _lost_processes(self, limits: Deadlines) -> tuple[RankFailure, ...]:
        """Return the ranks of processes that went silent while others on their node speak."""
        silent = {
            ticket: silence_s
            for ticket in self._hosts
            if (silence_s := self._times.silence_s(ticket))
            >= (limits.lost_s if ticket in self._last else limits.first_word_s)
        }
        speaking = {host for ticket, host in self._hosts.items() if ticket not in silent}
        return tuple(
            process_lost(rank, self._hosts[ticket], silence_s, self.states())
            for ticket, silence_s in silent.items()
            if self._hosts[ticket] in speaking
            for rank in self._ranks_of(ticket)
        )

    def _ranks_of(self, ticket: int) -> range:
        first = self._order.first_rank.get(str(ticket), 0)
        return range(first, first + self._order.count.get(str(ticket), 0))

    def _left(self, ticket: int) -> Left:
        return self._last[ticket].left if ticket in self._last else ""

    def over(self, deadline: Deadline) -> str:
        """Return why the wait has to end though no rank failed; empty while there is time."""
        if self._store.lost is not None:
            return f"the store was lost: {self._store.lost}"
        early = [host for ticket, host in self._hosts.items() if self._left(ticket) == "timeout"]
        if not early and not deadline.passed:
            return ""
        at = min(self.states(), key=lambda state: state.calls, default=None)
        where = f", in {place(at)}" if at is not None else ""
        whose = f" of {', '.join(early)}" if early else ""
        return (
            f"--timeout{whose} was over after {len(self._points)} of {self._total} points{where}: "
            "give a longer one, fewer sizes or iterations"
        )

    def _read(self) -> None:
        for ticket, host in self._hosts.items():
            data = self._store.get(keys.bench_state(self._order.name, ticket))
            if isinstance(data, Missing):
                continue
            try:
                message = read_message(data, BenchState, FACTS_LIMIT_BYTES)
            except DecodeError as error:
                self._unreadable = f"a word of {host} about its workers was refused: {error}"
                self._complain(self._unreadable)
                continue
            known = self._last.get(ticket)
            if known is None or message.sequence != known.sequence:
                self._last[ticket] = self._with_last_states(message, known)
                self._times.hear(ticket)
                self._read_points(message.points)

    @staticmethod
    def _with_last_states(message: BenchState, known: BenchState | None) -> BenchState:
        """Keep the last states of a node that left: it says no more where its ranks are."""
        return replace(message, states=known.states) if message.left and known else message

    def _read_points(self, count: int) -> None:
        while (known := len(self._points) + len(self._refused)) < count:
            data = self._store.get_document(keys.bench_point(self._order.name, known))
            if isinstance(data, Missing):
                return
            try:
                point = decode_fact(data, Point, limit_bytes=REPORT_LIMIT_BYTES)
            except DecodeError as error:
                self._complain(f"a point of the benchmark was refused: {error}")
                return
            if isinstance(point, Missing):
                self._refused[known] = point.detail
                continue
            self._points = (*self._points, point)
            self._say(f"{point.op} {point.size_bytes} B: bus bandwidth {point.busbw_gb_s:.3f} GB/s")
            self._keep(self.result(()))

    def _is_measured(self) -> bool:
        """Return whether everything of the plan is there; only the comparison of single ranks may be missing."""
        return self._has_all_points() and (self._order.plan.mesh is None or self._mesh() is not None)

    def _has_all_points(self) -> bool:
        return len(self._points) + len(self._refused) >= self._total

    def _document(self, key: str, kind: type[T], what: str) -> T | None:
        """Return what is measured after the points; None where they did not come so far."""
        if not self._has_all_points() or self._store.lost is not None:
            return None
        data = self._store.get_document(key)
        if isinstance(data, Missing):
            return None
        try:
            return decode(data, kind, limit_bytes=REPORT_LIMIT_BYTES)
        except DecodeError as error:
            self._complain(f"what was measured {what} was refused: {error}")
            return None

    def _isolation(self) -> Isolation:
        """Return how fast ranks and links are by themselves; nothing where they did not come so far."""
        key = keys.bench_isolation(self._order.name)
        return self._document(key, Isolation, "of single ranks") or Isolation()

    def _mesh(self) -> MeshBench | None:
        """Return what was measured in the parallel groups, where there are any."""
        if self._order.plan.mesh is None:
            return None
        return self._document(keys.bench_mesh(self._order.name), MeshBench, "in the parallel groups")

    def _complain(self, text: str) -> None:
        """Say it once: what was refused lies in the store for the next look, too."""
        if text not in self._complaints:
            self._complaints.add(text)
            self._say(text)

    def states(self) -> list[RankState]:
        """Return where every rank was when its node last spoke."""
        return [state for message in self._last.values() for state in message.states]

    def _unheard_s(self) -> Mapping[str, float]:
        """Return how long each host's most silent process has been silent."""
        unheard_s = dict.fromkeys(self._hosts.values(), 0.0)
        for ticket, host in self._hosts.items():
            unheard_s[host] = max(unheard_s[host], self._times.silence_s(ticket))
        return unheard_s

    def with_logs(self, result: BenchResult) -> BenchResult:
        """Return the result with what the nodes read in their workers' NCCL logs, and saw of them, at their end."""
        result = replace(
            result,
            undead=self._undead,
            mesh=self._mesh(),
            unfinished="; ".join(filter(None, (result.unfinished, self._unsaid))),
        )
        if not self.on_nccl:
            return result
        logs = tuple(self._log_of(ticket, host) for ticket, host in self._hosts.items())
        failures = culprits(result.failures, logs, self.states())
        return replace(result, logs=_by_host(logs), failures=failures)

    def _log_of(self, ticket: int, host: str) -> NodeLog:
        data = self._store.get_document(keys.bench_log(self._order.name, ticket))
        if isinstance(data, Missing):
            return NodeLog(host, Missing("absent", "its NCCL log did not come"))
        try:
            read = decode(data, NodeLog, limit_bytes=FACTS_LIMIT_BYTES)
        except DecodeError as error:
            return NodeLog(host, Missing("error", f"its NCCL log was refused: {error}"))
        if isinstance(read.processes, Missing):
            return replace(read, host=host)
        return replace(
            read, host=host, processes=tuple(replace(process, host=host) for process in read.processes)
        )

    def result(self, failures: tuple[RankFailure, ...], unfinished: str = "") -> BenchResult:
        """Return what there is up to now."""
        order, network = self._order, self._network
        return BenchResult(
            backend=network.backend,
            world_size=order.world_size,
            nodes=len(set(self._hosts.values())),
            plan=order.plan,
            transport=network.transport,
            points=self._points,
            failures=failures,
            started=has_started(self.states(), order.world_size) or bool(self._points),
            isolation=self._isolation(),
            environment=network.environment_of,
            places=network.binding,
            unfinished="; ".join(filter(None, (unfinished, *refusals(order.plan, self._refused)))),
            refused=len(self._refused),
        )


def quick_deadlines(order: BenchOrder) -> Deadlines:
    """Return the deadlines for a job that may well hang as it is: that is called soon after its processes started.

    NCCL looks at every GPU and link before it has a group, which takes seconds on a healthy node with eight.
    """
    group_s = (20.0 if order.plan.backend == "nccl" else 8.0) + order.world_size / 50
    return Deadlines(join_s=group_s, first_call_s=group_s, stall_s=8.0)


def _by_host(logs: Sequence[NodeLog]) -> tuple[NodeLog, ...]:
    """Return one log for each host, where several processes of a node had ranks."""
    found: dict[str, NodeLog] = {}
    for log in logs:
        known = found.setdefault(log.host, log)
        if known is log:
            continue
        both = [part.processes for part in (known, log) if not isinstance(part.processes, Missing)]
        processes = tuple(process for part in both for process in part) if both else known.processes
        found[log.host] = replace(known, processes=processes, hang=known.hang or log.hang)
    return tuple(found.values())
