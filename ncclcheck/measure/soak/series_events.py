"""From the lines of a series to its events, one line after the other, in memory that does not grow with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from math import log

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.soak.counters import CounterBook
from ncclcheck.measure.soak.drops import LEAST_RUN, Drop, DropDetector
from ncclcheck.measure.soak.incidents import Incidents
from ncclcheck.measure.soak.pair_rates import DropSource, PairHistory, drop_source
from ncclcheck.measure.soak.spread import (
    P99_ITERATIONS,
    P999_ITERATIONS,
    WorstWindow,
    percentile_us,
    shortened,
)
from ncclcheck.measure.soak.trend import trend
from ncclcheck.model.benchmarks.op import Op
from ncclcheck.model.benchmarks.soak import (
    USUAL_DROP,
    Soak,
    SoakBlock,
    SoakEnd,
    SoakEvent,
    SoakGap,
    SoakLine,
    SoakPair,
    SoakSample,
    SoakSeries,
    SoakStart,
)
from ncclcheck.model.formats.prose import listed
from ncclcheck.timeouts import SOAK_TOLD_S

MOST_EVENTS = 200
_SHOWN = 4  # hosts of a drop, in words
LEAST_CALM = 6  # blocks after a round of pairs, before its rates count as usual ones
WINDOWS = (60, 300, 3600)


class _Noted(Struct, frozen=True):
    """A drop with all that is known of it: its source, since when that is known, and what moved meanwhile."""

    op: Op
    drop: Drop
    drop_source: DropSource | None = None
    named_s: float | None = None
    counters: tuple[str, ...] = ()


class _Fresh(Struct, frozen=True):
    """The last round of pairs, and how many calm blocks followed it."""

    pairs: tuple[SoakPair, ...]
    calm: int = 0


class _OpSeries:
    """All blocks of one collective. A class because each block adds to it."""

    def __init__(self, drop: float) -> None:
        self.detector = DropDetector(drop)
        self.samples: list[SoakSample] = []
        self.times: Counter[int] = Counter()
        self.noted: int | None = None  # the number of the drop that lasts


class _Episode:
    """What was seen since a drop was suspected. A class because each block adds to it."""

    def __init__(self) -> None:
        self.pairs: list[SoakPair] = []
        self.pairs_at_s = 0.0
        self.growth: Counter[tuple[str, str]] = Counter()
        self.blocks = 0


class SoakJudge:
    """Judges a series. A class because it takes the lines as they arrive, and gives its events at any time."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._start: SoakStart | None = None
        self._end: SoakEnd | None = None
        self._began = self._last_s = 0.0
        self._blocks = self._unreadable = self._left_out = self._next = 0
        self._series: dict[Op, _OpSeries] = {}
        self._drops: dict[int, _Noted] = {}
        self._noted = 0  # drops so far, with those that were withdrawn
        self._pairs, self._counters, self._incidents = PairHistory(), CounterBook(), Incidents()
        self._episode: _Episode | None = None
        self._fresh: _Fresh | None = None
        self._windows = [WorstWindow(seconds) for seconds in WINDOWS]
        self._gaps: list[SoakGap] = []

    def feed(self, line: SoakLine | None) -> None:
        """Take the next line; None for one that cannot be read."""
        if line is None:
            self._unreadable += 1
        elif isinstance(line, SoakStart):
            self._begin(line)
        elif isinstance(line, SoakEnd):
            self._end = line
        elif self._start is not None:
            self._take(line)

    def _begin(self, start: SoakStart) -> None:
        if self._start is None:
            self._began = self._last_s = start.at_s
        elif start.at_s > self._last_s:
            self._gap(start.at_s)
        self._start, self._end = start, None
        for series in self._series.values():
            series.detector.demand(start.plan.drop)

    def _gap(self, until_s: float) -> None:
        """Note that nothing is known since the last block: not measured, or its lines were lost."""
        gap = SoakGap(self._since(self._last_s), self._since(until_s))
        if len(self._gaps) < MOST_EVENTS:
            self._gaps.append(gap)
        else:
            self._gaps[-1] = replace(self._gaps[-1], to_s=gap.to_s)
        for window in self._windows:
            window.break_off()

    def _take(self, block: SoakBlock) -> None:
        if self._blocks and block.number > self._next and block.at_s > self._last_s:
            self._gap(block.at_s)
        self._blocks += 1
        self._next = block.number + 1
        self._last_s = max(self._last_s, block.at_s + block.seconds)
        at_s = self._since(block.at_s)
        self._counters.add(block, self._began)
        self._incidents.add(block, at_s, self._hosts())
        if block.op is None:
            self._take_pairs(block)
        elif block.iterations:
            self._take_times(block, block.op)
        if self._episode is not None:
            self._episode.blocks += 1
            self._episode.growth.update(self._counters.growth_of(block.nodes))
            self._name_drops(self._episode)

    def _take_pairs(self, block: SoakBlock) -> None:
        if self._episode is None:
            self._usual_pairs(LEAST_CALM)
            self._fresh = _Fresh(block.pairs)
        else:
            self._episode.pairs += block.pairs
            self._episode.pairs_at_s = self._since(block.at_s + block.seconds)

    def _usual_pairs(self, blocks: int) -> None:
        """Take the last pairs for usual ones once so many calm blocks followed: a drop may have begun before them."""
        if self._fresh is None:
            return
        self._fresh = _Fresh(self._fresh.pairs, self._fresh.calm + blocks)
        if self._fresh.calm >= LEAST_CALM:
            self._pairs.add(self._fresh.pairs)
            self._fresh = None

    def _take_times(self, block: SoakBlock, op: Op) -> None:
        assert self._start is not None  # noqa: S101 (feed)
        series = self._series.setdefault(op, _OpSeries(self._drop))
        at_s, end_s = self._since(block.at_s), self._since(block.at_s + block.seconds)
        usual_us = series.detector.usual_us
        self._incidents.add_tails(block, at_s, usual_us or block.median_us, self._hosts())
        if usual_us is not None:
            for window in self._windows:
                window.feed(block.at_s, block.at_s + block.seconds, log(block.median_us / usual_us))
        series.times.update(block.times)
        series.samples = shortened([*series.samples, SoakSample(at_s, block.median_us, block.worst_us)])
        found = series.detector.feed(at_s, end_s, block.median_us)
        if self.is_suspect and self._episode is None:
            self._episode, self._fresh = _Episode(), None
        self._usual_pairs(1)
        if found is not None:
            self._note(series, found, op)
        if not self.is_suspect:
            self._episode = None

    def _note(self, series: _OpSeries, drop: Drop, op: Op) -> None:
        if series.noted is not None:
            self._drops[series.noted] = replace(self._drops[series.noted], drop=drop)
        elif len(self._drops) < MOST_EVENTS:
            series.noted = self._noted
            self._noted += 1
            self._drops[series.noted] = _Noted(op, drop)
        else:
            self._left_out += 1
        if drop.to_s is not None:
            if drop.is_withdrawn and series.noted is not None:
                del self._drops[series.noted]
            series.noted = None

    def _name_drops(self, episode: _Episode) -> None:
        """Update the lasting drops: their present size, their source, and what moved meanwhile."""
        for series in self._series.values():
            drop = series.detector.drop
            if series.noted is None or drop is None:
                continue
            before = self._drops[series.noted]
            named = drop_source(self._pairs.parts(episode.pairs), drop.part)
            if named is None:
                named, named_s = before.drop_source, before.named_s
            else:
                named_s = before.named_s or max(drop.known_s, episode.pairs_at_s)
            moved = self._counters.moved(episode.growth, episode.blocks)
            self._drops[series.noted] = _Noted(before.op, drop, named, named_s, moved)

    @property
    def start(self) -> SoakStart | None:
        """Return how the series began, or was resumed last."""
        return self._start

    @property
    def end(self) -> SoakEnd | None:
        """Return how it ended; None while it runs, and where it was killed."""
        return self._end

    @property
    def next_number(self) -> int:
        """Return the number of the block that would be next."""
        return self._next

    @property
    def is_suspect(self) -> bool:
        """Return whether a drop lasts, or may just have begun."""
        return any(series.detector.is_suspect for series in self._series.values())

    @property
    def events(self) -> int:
        """Return how many events there are so far."""
        return len(self._sure()) + self._incidents.count

    def _sure(self) -> list[_Noted]:
        """Return the drops that are significant by now."""
        return [noted for noted in self._drops.values() if noted.drop.low > 0]

    @property
    def _drop(self) -> float:
        return USUAL_DROP if self._start is None else self._start.plan.drop

    @property
    def _spacing_s(self) -> float:
        """Return how far blocks of the same collective are apart."""
        return 0.0 if self._start is None else self._start.plan.every_s * max(1, len(self._start.ops))

    def _hosts(self) -> tuple[str, ...]:
        return () if self._start is None else self._start.hosts

    def _since(self, at_s: float) -> float:
        return round(at_s - self._began, 2)

    def result(self) -> Soak:
        """Return what is known so far."""
        start, end = self._start, self._end
        size_bytes = 0 if start is None else start.size_bytes
        lost = self._incidents.lost(end, self._since(self._last_s)) if end is not None else ()
        events = (*map(_event, self._sure()), *self._trends(), *self._incidents.events(), *lost)
        windows = [window.found(self._began) for window in self._windows]
        return Soak(
            blocks=self._blocks,
            seconds=self._since(self._last_s),
            events=tuple(sorted(events, key=lambda event: (event.from_s, event.kind))),
            began=self._began,
            drop=self._drop,
            series=tuple(
                _series_of(op, size_bytes, series, self._spacing_s) for op, series in self._series.items()
            ),
            windows=tuple(window for window in windows if window is not None),
            counters=self._counters.rows(),
            gpus=self._counters.gpus(),
            gaps=tuple(self._gaps),
            hosts=tuple(dict.fromkeys(self._hosts())),
            folder=self._folder,
            is_finished=end is not None and end.is_finished,
            unreadable=self._unreadable,
            events_left_out=self._left_out,
            carriers_unread=self._counters.carriers_unread(self._hosts()),
        )

    def _trends(self) -> Iterable[SoakEvent]:
        for op, series in self._series.items():
            found = trend(series.samples, self._drop)
            if found is not None:
                yield SoakEvent(
                    kind="trend",
                    from_s=series.samples[0].at_s,
                    to_s=None,
                    hosts=(),
                    direction=None,
                    size_percent=round(100 * found.part, 2),
                    summary=f"{op} became slower all the time: {100 * found.per_hour:.2g} % an hour, "
                    f"{found.part:.0%} in all",
                    counters=self._counters.of_heat(),
                )


def judged(lines: Iterable[SoakLine | None], folder: str = "") -> Soak:
    """Return what all these lines tell."""
    judge = SoakJudge(folder)
    for line in lines:
        judge.feed(line)
    return judge.result()


def _event(noted: _Noted) -> SoakEvent:
    drop, named = noted.drop, noted.drop_source
    return SoakEvent(
        kind="drop",
        from_s=drop.from_s,
        to_s=drop.to_s,
        hosts=() if named is None else named.hosts,
        direction=None if named is None else named.direction,
        size_percent=round(100 * drop.part, 2),
        summary=f"{noted.op} was {drop.part:.1%} slower than before (95 % interval {drop.low:.1%} to {drop.high:.1%})"
        + (f": {_words(named)}" if named is not None else ""),
        counters=noted.counters,
        named_s=drop.known_s if named is None else noted.named_s,
    )


def _words(named: DropSource) -> str:
    if named.is_path:
        both_ways = ", both ways" if named.direction else ""
        return f"the path from {named.hosts[0]} to {named.hosts[1]} carries {named.part:.0%} less{both_ways}"
    if len(named.hosts) > 1:
        verb = {"send": "send", "receive": "receive", "both": "send and receive"}[named.direction or "both"]
        return f"{listed(named.hosts, _SHOWN)} {verb} up to {named.part:.0%} less"
    verb = {"send": "sends", "receive": "receives", "both": "sends and receives"}[named.direction or "both"]
    return f"{named.hosts[0]} {verb} {named.part:.0%} less"


def _series_of(op: Op, size_bytes: int, series: _OpSeries, spacing_s: float) -> SoakSeries:
    count = series.times.total()
    # The times are counted in classes, whose middle may lie above the longest time of all.
    worst_us = max((sample.worst_us for sample in series.samples), default=math.inf)
    p50, p99, p999 = (round(min(percentile_us(series.times, part), worst_us), 1) for part in (50, 99, 99.9))
    blocks = max(LEAST_RUN, math.ceil(SOAK_TOLD_S / spacing_s)) if spacing_s else LEAST_RUN
    least = series.detector.least_drop(blocks)
    return SoakSeries(
        op,
        size_bytes,
        count,
        p50,
        p99 if count >= P99_ITERATIONS else None,
        p999 if count >= P999_ITERATIONS else None,
        tuple(series.samples),
        None if least is None else round(100 * least, 1),
        None if least is None else round(blocks * spacing_s, 1),
    )
