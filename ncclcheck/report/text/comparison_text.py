"""As-is and advised for people: two columns, and what the difference is."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ncclcheck.model.bench import Comparison, Variant
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.text.page import Line, Span, line

_WORDS = {
    "faster": "advised is faster",
    "slower": "advised is slower",
    "no effect": "no effect",
    "as-is failed": "as-is failed, advised works",
    "advised failed": "advised failed, as-is works",
    "both failed": "both failed",
    "not measured": "nothing is shown",
}
_STYLES = {"faster": "bold green", "as-is failed": "bold green", "no effect": "bold"}


def comparison_lines(report: Report) -> Iterator[Line]:
    """Interface, time and bus bandwidth of both, their failures, and the effect with its interval."""
    comparison = report.comparison
    if comparison is None:
        return
    yield line(Span("as-is and advised", "bold"), f", in turns, {_setting(comparison)}")
    variants = (comparison.as_is, comparison.advised)
    rows = [
        ("", "as-is", "advised"),
        ("interface", *(_interfaces(variant) for variant in variants)),
        ("time (us)", *(_time(variant) for variant in variants)),
        ("busbw (GB/s)", *(_bandwidth(variant) for variant in variants)),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        columns = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield line("  ".join((name.ljust(widths[0]), *columns)).rstrip(), indent=2, wrap=False)
    for name, variant in zip(("as-is", "advised"), variants, strict=True):
        if variant.failure:
            yield line(f"{name}: {variant.failure}", indent=2)
    style = _STYLES.get(comparison.verdict, "bold red")
    yield line("  ", Span(_WORDS[comparison.verdict], style), _effect(comparison))


def _setting(comparison: Comparison) -> str:
    rounds = f", {plural(comparison.rounds, 'round')}" if comparison.rounds else ""
    size = format_size(comparison.size_bytes)
    return f"{comparison.op} {size}, {plural(comparison.world_size, 'rank')}, {comparison.backend}{rounds}"


def _effect(comparison: Comparison) -> str:
    speedup, low, high = comparison.speedup, comparison.speedup_low, comparison.speedup_high
    if speedup is None or low is None or high is None:
        return ""
    return f": {format_number(speedup)} times as fast (95 % interval {format_number(low)} to {format_number(high)})"


def _interfaces(variant: Variant) -> str:
    names = dict.fromkeys(interface for interface, _ in variant.places.values())
    return "/".join(names) or "none"


def _time(variant: Variant) -> str:
    return (
        format_number(median(variant.times_us)) if variant.times_us else "failed" if variant.failure else "-"
    )


def _bandwidth(variant: Variant) -> str:
    return "-" if variant.busbw_gb_s is None else format_number(variant.busbw_gb_s)
