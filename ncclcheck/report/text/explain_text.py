"""What `explain` found, for people: the cause, what was really used, and with -v the lines that only sound bad."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import LogReport, Report
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import BLANK, Line, Span, line

_KIB, _MIB = 1 << 10, 1 << 20
_MOST_VALUES = 8


def explain_header(report: Report, log: LogReport, verbose: int) -> Line:
    """Return the first line: how much was read, and with -v of which files."""
    return line(
        Span(f"{report.tool.name} {report.tool.version} · explain · {_what_was_read(log, verbose)}", "bold")
    )


def log_lines(report: Report, verbose: int) -> Iterator[Line]:
    """Yield what the job really used, and with -v the lines that are normal."""
    if report.log is None:
        return
    used, harmless = list(used_lines(report.log, verbose)), list(harmless_lines(report.log, verbose))
    yield from used
    if used and harmless:
        yield BLANK
    yield from harmless


def log_aside(report: Report, verbose: int) -> Iterator[Line]:
    """Yield the same below the files that were read, for formats that have no header."""
    if report.log is not None:
        yield line(", ".join(file.name for file in report.log.files))
    yield from log_lines(report, verbose)


def _what_was_read(log: LogReport, verbose: int) -> str:
    lines = sum(file.lines for file in log.files)
    size = sum(file.size_bytes for file in log.files)
    named = ", ".join(file.name for file in log.files) if verbose else ""
    amount = f"{plural(len(log.files), 'file')}, {plural(lines, 'line')}"
    if size:
        amount += f", {size / _MIB:.1f} MiB" if size >= _MIB else f", {max(size / _KIB, 0.1):.1f} KiB"
    return f"{amount}: {named}" if named else amount


def used_lines(log: LogReport, verbose: int) -> Iterator[Line]:
    """Yield what the job really used: what all ranks share in one line each, and where they differ."""
    rows = [row for row in log.used if verbose or row.what != "settings"]
    if rows:
        yield line(Span("really used", "bold"))
    shown: dict[str, int] = {}
    for row in rows:
        shown[row.what] = shown.get(row.what, 0) + 1
        if shown[row.what] > _MOST_VALUES and not verbose:
            continue
        where = f"  on {fold_hosts(row.hosts)}" if row.hosts else ""
        mark = "  (differs)" if row.differs else ""
        yield line(f"{row.what}: {row.value}{where}{mark}", indent=2)


def harmless_lines(log: LogReport, verbose: int) -> Iterator[Line]:
    """With -v: the lines that sound like trouble and are normal."""
    if not verbose or not log.harmless:
        return
    yield line(Span("harmless, although it looks like trouble", "bold"))
    for evidence in log.harmless:
        yield line(f"{evidence.observed} (from {evidence.source}): {evidence.expected}", indent=2)
