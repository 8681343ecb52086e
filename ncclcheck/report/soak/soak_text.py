"""What a soak found, for people: each series with its spread, the worst stretches, gaps, and every event."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ncclcheck.model.benchmarks.soak import Soak, SoakEvent, SoakSeries
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.model.units import format_size
from ncclcheck.report.text.page import Line, Span, line
from ncclcheck.report.text.plain import plain

_WIDTH = 60
_MARKS = "▁▂▃▄▅▆▇█"
_FULL = 1.3  # times the usual median fills the line
_MOST_COUNTERS = 12
_MOST_GPUS = 8  # nodes
_MINUTE_S, _HOUR_S = 60, 3600


def soak_lines(report: Report) -> Iterator[Line]:
    """Yield the series, the worst stretches, the counters that moved, gaps and events."""
    soak = report.soak
    if soak is None:
        return
    yield line(
        Span("soak", "bold"),
        f": {plural(soak.blocks, 'block')} in {long_words(soak.seconds)}"
        + (f", in {plain(soak.folder)}" if soak.folder else ""),
    )
    for series in soak.series:
        yield from _series(series)
    if soak.windows:
        worst = ", ".join(
            f"{long_words(window.seconds)} at {clock(window.at_s)} ({window.slower_percent:+.1f} %)"
            for window in soak.windows
        )
        yield line(f"slowest stretches: {worst}", indent=2)
    for gap in soak.gaps:
        yield line(f"nothing measured from {clock(gap.from_s)} to {clock(gap.to_s)}", indent=2)
    if soak.unreadable:
        yield line(f"{plural(soak.unreadable, 'line')} of the file could not be read", indent=2)
    for event in soak.events:
        yield line(Span(event.kind, "bold"), f" {event_words(event)}", indent=2)
    if soak.events_left_out:
        yield line(f"{soak.events_left_out} more drops", indent=2)
    yield from _counters(soak)
    yield from _gpus(soak)


def event_words(event: SoakEvent) -> str:
    """Return when it was, and what."""
    until = "to the end" if event.to_s is None else f"to {clock(event.to_s)}"
    moved = f"; meanwhile {', '.join(event.counters)}" if event.counters else ""
    return plain(f"from {clock(event.from_s)} {until}: {event.summary}{moved}")


def clock(seconds: float) -> str:
    """Return a time since the series began: 0:12:30."""
    whole = round(seconds)
    return f"{whole // _HOUR_S}:{whole // _MINUTE_S % 60:02}:{whole % 60:02}"


def long_words(seconds: float) -> str:
    """Return a length of time: 30 s, 5 min, 2.5 h."""
    if seconds < 2 * _MINUTE_S and seconds != _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.3g} min" if seconds < _HOUR_S else f"{seconds / _HOUR_S:.3g} h"


def sparkline(medians: Sequence[float], width: int = _WIDTH) -> str:
    """Return the series as a line: each mark is the slowest of its part; 30 % above the median is full."""
    if not medians:
        return ""
    usual = sorted(medians)[len(medians) // 2]
    parts = min(width, len(medians))
    edges = [number * len(medians) // parts for number in range(parts + 1)]
    slowest = [max(medians[first:last]) for first, last in itertools.pairwise(edges)]
    return "".join(
        _MARKS[max(0, min(len(_MARKS) - 1, int((value / usual - 1) / (_FULL - 1) * len(_MARKS))))]
        for value in slowest
    )


def _series(series: SoakSeries) -> Iterator[Line]:
    size = format_size(series.size_bytes)
    figures = [f"median {series.median_us / 1e3:.4g} ms"]
    figures += [f"p99 {series.p99_us / 1e3:.4g}"] if series.p99_us is not None else []
    figures += [f"p99.9 {series.p999_us / 1e3:.4g}"] if series.p999_us is not None else []
    worst_us = max((sample.worst_us for sample in series.samples), default=0.0)
    figures.append(f"longest {worst_us / 1e3:.4g}")
    yield line(f"{series.op} {size}: {', '.join(figures)} ({series.iterations} iterations)", indent=2)
    yield line(sparkline([sample.median_us for sample in series.samples]), indent=2, wrap=False)
    least = series.least_drop_percent
    if least is not None and series.least_drop_s is not None:
        how_long = long_words(series.least_drop_s)
        yield line(f"a drop of {how_long} shows in this noise from {least:.2g} % on", indent=2)


def _counters(soak: Soak) -> Iterator[Line]:
    for count in soak.counters[:_MOST_COUNTERS]:
        yield line(f"counter {plain(count.host)}: {plain(count.name)} +{count.grown}", indent=2)
    if len(soak.counters) > _MOST_COUNTERS:
        yield line(f"{len(soak.counters) - _MOST_COUNTERS} more counters moved", indent=2)


def _gpus(soak: Soak) -> Iterator[Line]:
    """Yield the clocks of the nodes whose clock fell most."""
    fallen = sorted(soak.gpus, key=lambda gpus: gpus.least_mhz / gpus.usual_mhz if gpus.usual_mhz else 1.0)
    for gpus in fallen[:_MOST_GPUS]:
        heat = f", {gpus.hottest_c} C at most" if gpus.hottest_c else ""
        yield line(
            f"GPU clock of {plain(gpus.host)}: {gpus.usual_mhz:.0f} MHz, {gpus.least_mhz:.0f} at least "
            f"({clock(gpus.least_at_s)}){heat}",
            indent=2,
        )
    if len(fallen) > _MOST_GPUS:
        yield line(f"{len(fallen) - _MOST_GPUS} more nodes with GPUs", indent=2)
