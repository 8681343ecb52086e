"""The sections of a report in Markdown, without their headings; one that the report does not have yields nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ncclcheck.model.bench import Point
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import NcclEntry, Report, Used
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.markdown.markdown_text import block, code, folded, md, paragraph, table
from ncclcheck.report.shell import comment, export
from ncclcheck.report.text.bench_text import (
    bench_setting,
    failure_words,
    reference_words,
    repeat_words,
    wrong_words,
)
from ncclcheck.report.text.checks_text import unknown_checks
from ncclcheck.report.text.findings_text import merged_evidence, merged_findings
from ncclcheck.report.text.fleet_text import HEADER, fleet_rows, fleet_words
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, draw_plain

_SEVERITY = {"error": "🔴 error", "warning": "🟡 warning", "info": "🔵 info"}
_PARTLY = {"found": "unknown in part"}
_OPEN_EVIDENCE = 6


def as_block(lines: Callable[[Report], Iterable[Line]]) -> Callable[[Report], Iterator[str]]:
    """Return the section that has those lines as they are in the terminal, in a code block."""

    def markdown(report: Report) -> Iterator[str]:
        drawn = draw_plain(lines(report))
        if drawn:
            yield block(drawn.splitlines(), "text")

    return markdown


def findings_markdown(report: Report) -> Iterator[str]:
    """Yield each finding with its evidence and what to do about it."""
    for finding in merged_findings(report.findings):
        yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[str]:
    where = f" on {code(fold_hosts(finding.hosts))}" if finding.hosts else ""
    yield f"### {_SEVERITY[finding.severity]}: {md(finding.code)} {md(finding.slug)}{where}\n\n"
    yield f"{paragraph(finding.summary)}\n\n"
    rows = [
        [
            code(fold_hosts(evidence.hosts)),
            *map(md, (evidence.subject, evidence.observed, evidence.expected)),
            code(evidence.source),
        ]
        for evidence in merged_evidence(finding.evidence)
    ]
    if rows:
        seen = table(["hosts", "what", "seen", "expected", "read from"], rows)
        yield seen if len(rows) <= _OPEN_EVIDENCE else folded(f"seen in {len(rows)} places", seen)
        yield "\n"
    for fix in finding.fixes:
        yield from _fix(fix)


def _fix(fix: Fix) -> Iterator[str]:
    yield f"**Fix**: {md(fix.text)}\n\n"
    lines = [*fix.commands, *(export(name, value) for name, value in fix.env.items())]
    if lines:
        yield block(lines) + "\n"
    if fix.risk:
        yield f"Risk: {md(fix.risk)}\n\n"


def fleet_markdown(report: Report) -> Iterator[str]:
    """Yield the checks of several reports that did not pass on every node."""
    if report.fleet is None:
        return
    yield f"{md(fleet_words(report.fleet))}\n"
    rows = [[md(slug), *numbers, code(where)] for slug, *numbers, where in fleet_rows(report.fleet)]
    if rows:
        yield "\n" + table(list(HEADER), rows)


def unknown_markdown(report: Report) -> Iterator[str]:
    """Yield what crashed or is unknown, also in part: it did not pass."""
    rows = [
        [_PARTLY.get(entry.outcome, entry.outcome), code(entry.code), *map(md, (entry.slug, entry.reason))]
        for entry in unknown_checks(report)
    ]
    if rows:
        yield table(["", "code", "check", "why"], rows)


def settings_markdown(report: Report) -> Iterator[str]:
    """Yield the advised environment as lines for a shell, and the notes."""
    advice = report.advice
    lines = []
    for setting in advice.env:
        where = f", on {fold_hosts(setting.hosts)} only" if setting.hosts else ""
        lines += [f"{comment(setting)}{where}", export(setting.name, setting.value)]
    if lines:
        yield block(lines)
    for note in advice.notes:
        yield f"\n- {paragraph(note)}\n"


def nccl_markdown(report: Report) -> Iterator[str]:
    """Yield a row for each choice, with the nodes that share it."""
    groups: dict[tuple[str, ...], list[NcclEntry]] = {}
    for entry in report.nccl:
        interface = entry.interface or ("none: it would fail" if entry.fails else "not known")
        key = (interface, entry.network or "not known", entry.version or "not known", entry.source)
        groups.setdefault(key, []).append(entry)
    if not groups:
        return
    rows = [
        [code(fold_hosts(entry.host for entry in group)), *map(md, key), md(group[0].reason)]
        for key, group in groups.items()
    ]
    yield table(["hosts", "interface", "network", "version", "source", "why"], rows)


def bench_markdown(report: Report) -> Iterator[str]:
    """Yield the setting, the ranks that failed, the points, the ceilings, and what to make of them."""
    bench = report.bench
    if bench is None:
        return
    yield f"{paragraph(bench_setting(bench))}\n\n"
    for failure in bench.failures:
        yield f"- failed: {md(failure_words(failure))}\n"
    yield "\n" if bench.failures else ""
    header = [
        "op",
        "size",
        "type",
        "iterations",
        "time (us)",
        "p95 (us)",
        "algbw (GB/s)",
        "busbw (GB/s)",
        "wrong",
        "repeat (GB/s)",
        "count",
        "first (us)",
    ]
    rows = [_row(point) for point in bench.points]
    yield table(header, rows, right=9) if rows else "no point was measured\n"
    ceilings = [
        [
            md(ceiling.op),
            format_number(ceiling.busbw_gb_s),
            f"{ceiling.reached:.0%}",
            md(ceiling.binds),
            md(ceiling.label),
            ""
            if ceiling.limit_gb_s is None
            else f"{format_number(ceiling.limit_gb_s)}: {md(ceiling.limited_by)}",
        ]
        for ceiling in bench.ceilings
    ]
    if ceilings:
        yield "\n" + table(
            ["op", "ceiling (GB/s)", "reached", "bottleneck", "note", "no algorithm exceeds (GB/s)"], ceilings
        )
    used = [f"used: {entry.what} {entry.value}{_on(entry)}" for entry in bench.used]
    published = map(reference_words, bench.references)
    for text in (*_wrong(bench.points), *used, *bench.links, *published, *bench.remarks):
        yield f"\n- {paragraph(text)}\n"


def _on(used: Used) -> str:
    return f" on {fold_hosts(used.hosts)}" if used.hosts else ""


def _wrong(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        if point.first_wrong is not None:
            yield f"{point.op} {format_size(point.size_bytes)}: {wrong_words(point.first_wrong)}"


def _row(point: Point) -> list[str]:
    numbers = (point.time_us.mean, point.time_us.p95, point.algbw_gb_s, point.busbw_gb_s)
    wrong = "not verified" if point.wrong is None else str(point.wrong)
    unstable = f" ({md(point.unstable)})" if point.unstable else ""
    return [
        md(point.op),
        format_size(point.size_bytes) + unstable,
        md(point.dtype),
        str(point.iters),
        *map(format_number, numbers),
        wrong,
        repeat_words(point),
        str(point.count),
        format_number(point.first_us),
    ]


def log_markdown(report: Report) -> Iterator[str]:
    """Yield the logs that were read, what was really used, and the lines that are normal."""
    log = report.log
    if log is None:
        return
    names = ", ".join(code(file.name) for file in log.files)
    yield f"{plural(len(log.files), 'file')}{': ' if names else ''}{names}\n\n"
    if log.used:
        rows = [
            [
                md(used.what),
                code(used.value) + (" (differs)" if used.differs else ""),
                code(fold_hosts(used.hosts)) if used.hosts else "all",
            ]
            for used in log.used
        ]
        yield table(["really used", "value", "hosts"], rows)
        yield "\n"
    if log.harmless:
        normal = [
            [code(evidence.observed), md(evidence.expected), code(evidence.source)]
            for evidence in log.harmless
        ]
        shown = table(["line", "why it is normal", "read from"], normal)
        yield folded("harmless, although it looks like trouble", shown)


def checks_markdown(report: Report) -> Iterator[str]:
    """Yield all checks, folded."""
    if report.checks:
        rows = [
            [
                entry.outcome.replace("_", " "),
                code(entry.code),
                md(entry.slug),
                md(entry.title),
                md(entry.reason),
            ]
            for entry in report.checks
        ]
        header = ["outcome", "code", "check", "title", "reason"]
        yield folded(f"all {plural(len(rows), 'check')}", table(header, rows))
