"""Which pairs of nodes were tried and what failed, and whether their messages were authenticated."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report
from ncclcheck.report.text.page import Line, line
from ncclcheck.report.text.plain import plain

_A_PAIR = 2


def authentication_words(report: Report) -> str:
    """Return whether the messages between the nodes were authenticated, and how; nothing where none were sent."""
    if len(report.nodes) < _A_PAIR or report.fleet is not None:
        return ""
    by = report.authentication.by
    return f"authenticated by {plain(by)}" if by else "not authenticated: the run had no key"


def reach_lines(report: Report) -> Iterator[Line]:
    """How many pairs of nodes were tried, and how many attempts failed how; the checks name them."""
    if not isinstance(report.coverage, Missing):
        coverage = report.coverage
        yield line(
            f"{coverage.pairs_planned} of {coverage.pairs_possible} directed pairs of nodes were tried "
            f"({coverage.scheme})"
        )
    if words := authentication_words(report):
        yield line(words)
    failed: dict[str, int] = {}
    for probe in report.probes:
        if probe.outcome not in ("ok", "self"):
            key = f"{probe.kind} {probe.outcome}"
            failed[key] = failed.get(key, 0) + 1
    if failed:
        counts = ", ".join(f"{count} x {key}" for key, count in sorted(failed.items()))
        yield line(f"attempts that failed: {counts}")
