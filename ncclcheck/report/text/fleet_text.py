"""The checks of several reports as a table, for people: on how many nodes each passed, and where it did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Fleet, FleetCheck, Report
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line

HEADER = ("check", "passed", "found", "unknown", "nodes")


def fleet_lines(report: Report) -> Iterator[Line]:
    """Yield the table of the checks that did not pass everywhere."""
    if report.fleet is None:
        return
    yield line(Span("fleet", "bold"), f": {fleet_words(report.fleet)}")
    rows = [HEADER, *fleet_rows(report.fleet)]
    if len(rows) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield line(_aligned(row, widths), indent=2, wrap=False)


def fleet_words(fleet: Fleet) -> str:
    """Return how many reports there are, and from when."""
    when = fleet.newest if fleet.oldest == fleet.newest else f"{fleet.oldest} to {fleet.newest}"
    return f"{plural(fleet.reports, 'report')}, {when}" if fleet.reports else "no reports"


def fleet_rows(fleet: Fleet) -> list[tuple[str, ...]]:
    """Return a row for each check that found something or could not tell on some node, as `HEADER` has it."""
    return [
        (check.slug, str(check.passed), str(check.found), str(check.unknown), _where(check))
        for check in fleet.checks
        if check.found or check.unknown
    ]


def _where(check: FleetCheck) -> str:
    parts = [f"found on {fold_hosts(check.found_on)}"] if check.found_on else []
    parts += [f"unknown on {fold_hosts(check.unknown_on)}"] if check.unknown_on else []
    return "; ".join(parts)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, last = row
    middle = "  ".join(text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True))
    return f"{first.ljust(widths[0])}  {middle}  {last}"
