"""What node 0 knows of a running benchmark: the nodes' words about their workers, and who spoils it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from ncclcheck.bench.watch import (
    AT_THE_END,
    DEADLINES,
    Deadlines,
    RankState,
    all_done,
    has_started,
    judge,
    left_early,
    place,
)
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, REPORT_LIMIT_BYTES, Bench, read_message
from ncclcheck.exchange.store import TcpStore
from ncclcheck.model.bench import BenchResult, Point, RankFailure
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.run.bench_network import Network, transport_text
from ncclcheck.run.context import Context
from ncclcheck.run.lead import Member
from ncclcheck.run.local_bench import POLL_S, BenchState, Left


class Watch:
    """What is known of a running benchmark. State: each node's last word and when it came."""

    def __init__(
        self,
        context: Context,
        store: TcpStore,
        agents: tuple[Member, ...],
        order: Bench,
        network: Network,
        keep: Callable[[BenchResult], None] = lambda _: None,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        self._context, self._store, self._agents, self._order = context, store, agents, order
        self._network, self._keep, self._deadlines = network, keep, deadlines
        self._addresses = {address: host for host, (_, address) in network.binding.items()}
        self._last: dict[int, tuple[BenchState, float]] = {}
        self._started = time.monotonic()
        self._points: tuple[Point, ...] = ()
        self._complaints: set[str] = set()

    def until(self, deadline: Deadline) -> BenchResult:
        """The result once every rank is done, somebody spoiled the run, or the time of a node is over."""
        while True:
            failures = self.look(AT_THE_END if deadline.passed else self._deadlines)
            if all_done(self.states(), self._order.world_size):
                return self.result(())
            if failures:
                return self.result(failures)
            if over := self.over(deadline):
                return self.result((), over)
            time.sleep(POLL_S / 2)

    def look(self, deadlines: Deadlines | None = None) -> tuple[RankFailure, ...]:
        """The nodes' new words are read: who spoils it by now, if anybody does."""
        self._read()
        hosts, unheard_s = self._order.hosts, self._unheard_s()
        if all_done(self.states(), self._order.world_size):
            return ()
        return self._interrupted() or judge(
            self.states(), hosts, unheard_s, deadlines or self._deadlines, self._addresses
        )

    def speaking(self) -> list[int]:
        """The tickets of the nodes that still speak: they can be waited for."""
        unheard_s = self._unheard_s()
        return [one.ticket for one in self._agents if unheard_s[one.host] < DEADLINES.quiet_s]

    def stop(self) -> None:
        """The nodes know that these workers are to be ended."""
        self._store.set(f"{self._order.name}/stop", b"1")

    def done_key(self, ticket: int) -> str:
        """Where a node says that it has ended them."""
        return f"{self._order.name}/done/{ticket}"

    def _interrupted(self) -> tuple[RankFailure, ...]:
        hosts = {one.host for one in self._agents if self._left(one) == "interrupted"}
        ranks = enumerate(self._order.hosts)
        return tuple(left_early(rank, host, self.states()) for rank, host in ranks if host in hosts)

    def _left(self, one: Member) -> Left:
        return self._last[one.ticket][0].left if one.ticket in self._last else ""

    def over(self, deadline: Deadline) -> str:
        """Why no more can be waited for though nobody is to blame; empty while there is time."""
        if self._store.lost is not None:
            return f"the store was lost: {self._store.lost}"
        early = [one.host for one in self._agents if self._left(one) == "timeout"]
        if not early and not deadline.passed:
            return ""
        at = min(self.states(), key=lambda state: state.calls, default=None)
        where = f", in {place(at)}" if at is not None else ""
        whose = f" of {', '.join(early)}" if early else ""
        total = len(self._order.plan.ops) * len(self._order.plan.sizes_bytes)
        return (
            f"--timeout{whose} was over after {len(self._points)} of {total} points{where}: "
            "give a longer one, fewer sizes or iterations"
        )

    def _read(self) -> None:
        for one in self._agents:
            data = self._store.get(f"{self._order.name}/state/{one.ticket}")
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
            data = self._store.get_document(f"{self._order.name}/point/{len(self._points)}")
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

    def states(self) -> list[RankState]:
        """Where every rank was when its node last spoke."""
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
            started=has_started(self.states(), order.world_size) or bool(self._points),
            environment=network.environment_of,
            unfinished=unfinished,
        )
