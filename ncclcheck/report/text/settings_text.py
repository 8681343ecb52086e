"""The advised environment for people: lines to paste into a shell, each with its reason and its proof."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.report import Report
from ncclcheck.report.shell import comment, export
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line


def settings_lines(report: Report) -> Iterator[Line]:
    """Yield the settings as a block that a shell takes as it is, then the notes."""
    advice = report.advice
    if advice.env:
        yield line(Span("Settings to use", "bold"))
    last_reason = ""
    for setting in advice.env:
        where = f", on {fold_hosts(setting.hosts)} only" if setting.hosts else ""
        if (reason := f"{comment(setting)}{where}") != last_reason:
            # Not wrapped: each comment has to stay behind its own #.
            yield line(reason, indent=2, wrap=False)
            last_reason = reason
        yield line(Span(export(setting.name, setting.value), "cyan"), indent=2, wrap=False)
    for note in advice.notes:
        yield line(f"note: {note}")
