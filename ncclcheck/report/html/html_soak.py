"""The time axis of a soak: the series, the counters of the nodes and all events, one above the other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.model.benchmarks.soak import Soak, SoakSeries
from ncclcheck.report.soak.soak_text import clock, event_words
from ncclcheck.report.text.plain import plain

LEFT, WIDTH = 190, 760
SERIES_HEIGHT, ROW = 90, 16
_MOST_ROWS, _TICKS = 40, 6
_NAME_LENGTH = 30
_FILLS = {
    "drop": "hsl(0 70% 50%)",
    "trend": "hsl(20 70% 50%)",
    "tail": "hsl(40 80% 45%)",
    "flap": "hsl(280 50% 50%)",
    "wrong": "black",
    "died": "black",
    "hang": "black",
}


class AxisBar(Struct, frozen=True):
    """Something on the axis: where, how wide, in which colour, and what is said of it."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    title: str


class AxisName(Struct, frozen=True):
    """A text beside or below the axis."""

    x: float
    y: float
    text: str


class TimeAxis(Struct, frozen=True):
    """The chart: its size, the line of each series, bars and texts."""

    width: float
    height: float
    lines: tuple[str, ...]
    bars: tuple[AxisBar, ...]
    names: tuple[AxisName, ...]


def time_axis(soak: Soak | None) -> TimeAxis | None:
    """Return the chart; None without a series."""
    if soak is None or not soak.series or soak.seconds <= 0:
        return None
    drawn = _Drawn(soak)
    bars, names, lines = list[AxisBar](), list[AxisName](), list[str]()
    y = 4.0
    for series in soak.series:
        lines.append(_line(drawn, series, y))
        names.append(AxisName(0, y + SERIES_HEIGHT / 2, f"{series.op}, ms"))
        names += _scale(series, y)
        bars += _events(drawn, y, SERIES_HEIGHT)
        y += SERIES_HEIGHT + ROW
    for gap in soak.gaps:
        bars.append(drawn.bar(gap.from_s, gap.to_s, (4.0, y - 4.0), "hsl(0 0% 80%)", "nothing was measured"))
    for count in soak.counters[:_MOST_ROWS]:
        label = f"{count.host} {count.name}"
        names.append(AxisName(0, y + ROW - 5, plain(label)[:_NAME_LENGTH]))
        title = f"{label} +{count.grown} in all"
        bars += [
            drawn.bar(at_s, at_s, (y + 3, ROW - 6), "hsl(210 60% 45%)", f"{title}; at {clock(at_s)}")
            for at_s in count.at_s
        ]
        y += ROW
    for number in range(_TICKS + 1):
        at_s = soak.seconds * number / _TICKS
        names.append(AxisName(drawn.x(at_s) - 18, y + ROW, clock(at_s)))
    return TimeAxis(LEFT + WIDTH + 40, y + 2 * ROW, tuple(lines), tuple(bars), tuple(names))


class _Drawn(Struct, frozen=True):
    """The soak with its scale of time."""

    soak: Soak

    def x(self, at_s: float) -> float:
        """Return where a time is drawn."""
        return round(LEFT + WIDTH * min(1.0, max(0.0, at_s / self.soak.seconds)), 1)

    def bar(
        self, from_s: float, to_s: float | None, place: tuple[float, float], fill: str, title: str
    ) -> AxisBar:
        """Return a bar over that time, at (y, height)."""
        first, last = self.x(from_s), self.x(self.soak.seconds if to_s is None else to_s)
        return AxisBar(first, place[0], round(max(2.0, last - first), 1), place[1], fill, plain(title))


def _events(drawn: _Drawn, y: float, height: float) -> Iterator[AxisBar]:
    for event in drawn.soak.events:
        title = f"{event.kind} {event_words(event)}"
        yield drawn.bar(event.from_s, event.to_s, (y, height), _FILLS[event.kind], title)


def _bounds(series: SoakSeries) -> tuple[float, float]:
    medians = [sample.median_us for sample in series.samples]
    least, most = min(medians), max(medians)
    return least * 0.95, max(most, least * 1.1) * 1.02


def _line(drawn: _Drawn, series: SoakSeries, y: float) -> str:
    low, high = _bounds(series)
    return " ".join(
        f"{drawn.x(sample.at_s)},{y + SERIES_HEIGHT * (1 - (sample.median_us - low) / (high - low)):.1f}"
        for sample in series.samples
    )


def _scale(series: SoakSeries, y: float) -> Iterator[AxisName]:
    low, high = _bounds(series)
    yield AxisName(LEFT - 60, y + 10, f"{high / 1e3:.4g}")
    yield AxisName(LEFT - 60, y + SERIES_HEIGHT, f"{low / 1e3:.4g}")
