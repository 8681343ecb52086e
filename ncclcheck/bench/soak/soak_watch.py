"""A soak as node 0 watches it: as any benchmark, and every block goes to disk and is judged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ncclcheck.bench.culprits import Deadlines
from ncclcheck.bench.nodes.bench_order import BLOCKS_KEPT
from ncclcheck.bench.nodes.bench_watch import BenchWatch, Watched
from ncclcheck.bench.soak.series_folder import lines_in
from ncclcheck.bench.soak.soak_record import SoakRecord
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import REPORT_LIMIT_BYTES, SCHEMA, TOOL_VERSION
from ncclcheck.exchange.store import keys
from ncclcheck.facts.bounded_call import within
from ncclcheck.measure.remaining import TimeLeft
from ncclcheck.measure.soak.lines import is_sound
from ncclcheck.model.bench import BenchResult, RankFailure
from ncclcheck.model.benchmarks.soak import (
    EventKind,
    SoakBlock,
    SoakEnd,
    SoakEvent,
    SoakLost,
    SoakPlan,
    SoakRequest,
    SoakStart,
)
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import plural
from ncclcheck.timeouts import SOAK_WRITE_S

_ENDED = ("died", "error", "lost")
_MARKS = "▁▂▃▄▅▆▇█"
_DRAWN = 24  # blocks
_Key: TypeAlias = tuple[EventKind, float, tuple[str, ...]]
_HIGHEST = 1.3  # times the least median fills the sparkline


def watch_of(
    request: SoakRequest | None, watched: Watched, keep: Callable[[BenchResult], None], deadlines: Deadlines
) -> BenchWatch:
    """Return what watches this benchmark. Raises UsageError where the blocks of a soak cannot be written."""
    plan = watched.order.plan.soak
    if request is None or plan is None:
        return BenchWatch(watched, keep, deadlines)
    before = lines_in(request.folder) if request.resumes else None
    judge = None if isinstance(before, Missing) else before
    record = within(SOAK_WRITE_S, SoakRecord, request.folder, judge)
    if isinstance(record, Missing):
        raise UsageError(f"--state {request.folder}: {record.detail}")
    record.keep_nodes(watched.snapshot)
    watched.say(f"a line for each block in {request.folder}: 'ncclcheck report {request.folder}' at any time")
    return SoakWatch(watched, keep, deadlines, record)


class SoakWatch(BenchWatch):
    """What is known of a running soak. State: as of a benchmark, and the series."""

    def __init__(
        self,
        watched: Watched,
        keep: Callable[[BenchResult], None],
        deadlines: Deadlines,
        record: SoakRecord,
    ) -> None:
        super().__init__(watched, keep, deadlines)
        self._record, self._taken = record, 0
        self._told = _keys(record.judge.result().events)
        self._began = time.monotonic()
        self._medians: list[float] = []

    @property
    def _plan(self) -> SoakPlan:
        plan = self._order.plan.soak
        assert plan is not None  # noqa: S101 (watch_of)
        return plan

    def until(self, deadline: Deadline) -> BenchResult:
        """Return the result once the time of the soak is over, or a rank failed."""
        plan = self._order.plan
        self._record.begin(
            SoakStart(
                SCHEMA, TOOL_VERSION, round(time.time(), 3), plan.backend, self._network.transport,
                self._order.hosts, plan.ops, plan.sizes_bytes[0], self._plan,
            )
        )  # fmt: skip
        try:
            result = super().until(deadline)
        except KeyboardInterrupt:
            self._record.end(SoakEnd(0.0, is_finished=False, why="interrupted"))
            raise
        is_finished = not result.failures and not result.unfinished
        was_interrupted = any(failure.is_interrupted for failure in result.failures)
        why = result.unfinished or ("interrupted" if was_interrupted else "")
        self._record.end(SoakEnd(0.0, is_finished, why, _lost_ranks(result.failures)))
        return replace(result, soak=self._record.judge.result())

    def result(self, failures: tuple[RankFailure, ...], unfinished: str = "") -> BenchResult:
        """Return what there is up to now."""
        why = f"not all blocks are on disk: {self._record.lost}" if self._record.lost else ""
        found = super().result(failures, "; ".join(filter(None, (unfinished, why))))
        return replace(found, soak=self._record.judge.result(), started=found.started or bool(self._taken))

    def over(self, deadline: Deadline) -> str:
        """Return why the wait has to end though no rank failed; empty while there is time."""
        over = super().over(deadline)
        return f"--timeout was over after {self._taken} blocks" if over.startswith("--timeout") else over

    def standing(self) -> TimeLeft:
        """Return how far it is, with the last blocks and how many events there were."""
        total = max(1, math.ceil(self._plan.duration_s / self._plan.every_s))
        if not self._taken:
            before = super().standing()
            return TimeLeft(before.where, 0, total, None)
        left_s = max(0.0, self._plan.duration_s - (time.monotonic() - self._began))
        events = self._record.judge.events
        event_count = plural(events, "event")
        latest = f"{self._medians[-1] / 1e3:.4g} ms" if self._medians else ""
        where = f"block {self._taken} {sparkline(self._medians)} {latest}, {event_count}"
        return TimeLeft(where, min(self._taken, total), total, left_s)

    def _is_measured(self) -> bool:
        return False

    def _read_points(self, count: int) -> None:
        while self._taken < count:
            key = keys.bench_point(self._order.name, self._taken % BLOCKS_KEPT)
            data = self._store.get_document(key)
            if isinstance(data, Missing):
                return
            try:
                block = decode(data, SoakBlock, limit_bytes=REPORT_LIMIT_BYTES)
            except DecodeError as error:
                self._complain(f"a block of the soak was refused: {error}")
                self._taken += 1
                continue
            if not is_sound(block):
                self._complain("a block of the soak was refused: it has values that cannot be")
                self._taken += 1
                continue
            if not self._taken:
                self._began = time.monotonic()
            self._taken += 1
            if block.number != self._plan.first + self._taken - 1:
                self._complain("blocks of the soak came too fast to be read")
                continue
            self._record.add(block)
            if block.op is not None:
                self._medians = [*self._medians[1 - _DRAWN :], block.median_us]
            result = self.result(())
            self._keep(result)
            self._tell(result.soak.events if result.soak is not None else ())

    def _tell(self, events: Sequence[SoakEvent]) -> None:
        """Say what happened as soon as it is known, each event once, and a drop again when it has a name."""
        for event in events:
            key = event.kind, event.from_s, event.hosts
            if key not in self._told:
                self._told.add(key)
                self._say(f"{event.kind}: {event.summary}")


def _keys(events: Sequence[SoakEvent]) -> set[_Key]:
    return {(event.kind, event.from_s, event.hosts) for event in events}


def sparkline(values: Sequence[float]) -> str:
    """Return the values as a line of blocks: the least is empty, 30 % more, or the most, is full."""
    if not values:
        return ""
    least = min(values)
    reach = max(max(values), least * _HIGHEST) - least
    return "".join(
        _MARKS[min(len(_MARKS) - 1, int((value - least) / reach * len(_MARKS))) if reach else 0]
        for value in values
    )


def _lost_ranks(failures: Sequence[RankFailure]) -> tuple[SoakLost, ...]:
    """Return who was lost: not the ranks of a node on which somebody ended ncclcheck."""
    return tuple(_lost(failure) for failure in failures if not failure.is_interrupted)


def _lost(failure: RankFailure) -> SoakLost:
    kind: Literal["died", "hang"] = "died" if failure.state in _ENDED else "hang"
    return SoakLost(failure.rank, failure.host, kind, f"{failure.where}: {failure.detail}")
