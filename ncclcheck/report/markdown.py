"""The report as Markdown: for GITHUB_STEP_SUMMARY, a merge request, a ticket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.model.bench import Point
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import NcclEntry, Report, Used
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.markdown_text import block, code, folded, md, paragraph, table
from ncclcheck.report.shell import comment, export
from ncclcheck.report.text.bench_text import (
    bench_setting,
    failure_words,
    reference_words,
    repeat_words,
    wrong_words,
)
from ncclcheck.report.text.comparison_text import comparison_lines
from ncclcheck.report.text.findings_text import merged_evidence, merged_findings
from ncclcheck.report.text.fleet_text import HEADER, fleet_rows, fleet_words
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.groups_text import group_lines
from ncclcheck.report.text.measured_text import measured_lines
from ncclcheck.report.text.mesh_text import mesh_lines
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.sections import reach_lines

_MARK = {"pass": "✅", "fail": "❌", "unknown": "❓", "error": "💥"}
_SEVERITY = {"error": "🔴 error", "warning": "🟡 warning", "info": "🔵 info"}
_PARTLY = {"found": "unknown in part"}
_OPEN_EVIDENCE = 6


def to_markdown(report: Report) -> str:
    """Return the document: verdict, findings, unknowns, choices, measurements, settings, checks."""
    sections = ("".join(section) for section in _sections(report))
    return "\n".join(text for text in sections if text)


def _sections(report: Report) -> Iterator[Iterator[str]]:
    yield _verdict(report)
    yield _findings(report)
    yield _fleet(report)
    yield _unknown(report)
    yield _settings(report)
    yield _nccl(report)
    yield _between(report)
    yield _comparison(report)
    yield _bench(report)
    yield _groups(report)
    yield _used(report)
    yield _checks(report)


def _verdict(report: Report) -> Iterator[str]:
    verdict = report.verdict
    yield f"# {_MARK[verdict.status]} {md(report.tool.name)} {md(report.command)}: {verdict.status}\n\n"
    first, *more = verdict.reasons or ("no reason was given",)
    yield f"**exit code {verdict.exit_code}**: {md(first)}\n\n"
    for reason in more:
        yield f"- also: {md(reason)}\n"
    silent = [node.host for node in report.nodes if node.status == "silent"]
    nodes = f"{plural(len(report.nodes), 'node')}: {code(fold_hosts(node.host for node in report.nodes))}"
    yield "\n" if more else ""
    yield nodes if report.nodes else "no nodes"
    yield f"; silent: {code(fold_hosts(silent))}" if silent else ""
    yield f" · {report.elapsed_s:.1f} s · {md(report.created)} · version {md(report.tool.version)}\n"


def _findings(report: Report) -> Iterator[str]:
    findings = merged_findings(report.findings)
    if not findings:
        return
    yield f"## {plural(len(findings), 'finding')}\n\n"
    for finding in findings:
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


def _fleet(report: Report) -> Iterator[str]:
    """Yield the checks of several reports that did not pass on every node."""
    if report.fleet is None:
        return
    yield f"## Fleet\n\n{md(fleet_words(report.fleet))}\n"
    rows = [[md(slug), *numbers, code(where)] for slug, *numbers, where in fleet_rows(report.fleet)]
    if rows:
        yield "\n" + table(list(HEADER), rows)


def _unknown(report: Report) -> Iterator[str]:
    """Yield what crashed or is unknown, also in part: it did not pass."""
    rows = [
        [_PARTLY.get(entry.outcome, entry.outcome), code(entry.code), *map(md, (entry.slug, entry.reason))]
        for entry in report.checks
        if entry.outcome in ("crashed", "unknown") or (entry.outcome == "found" and entry.reason)
    ]  # fmt: skip
    if rows:
        yield f"## {plural(len(rows), 'unknown check')}\n\n"
        yield table(["", "code", "check", "why"], rows)


def _settings(report: Report) -> Iterator[str]:
    advice = report.advice
    if not advice.env and not advice.notes:
        return
    yield "## Settings to use\n\n"
    lines = []
    for setting in advice.env:
        where = f", on {fold_hosts(setting.hosts)} only" if setting.hosts else ""
        lines += [f"{comment(setting)}{where}", export(setting.name, setting.value)]
    if lines:
        yield block(lines)
    for note in advice.notes:
        yield f"\n- {paragraph(note)}\n"


def _nccl(report: Report) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[NcclEntry]] = {}
    for entry in report.nccl:
        interface = entry.interface or ("none: it would fail" if entry.fails else "not known")
        key = (interface, entry.network or "not known", entry.version or "not known", entry.source)
        groups.setdefault(key, []).append(entry)
    if not groups:
        return
    yield "## What NCCL chooses\n\n"
    rows = [
        [code(fold_hosts(entry.host for entry in group)), *map(md, key), md(group[0].reason)]
        for key, group in groups.items()
    ]
    yield table(["hosts", "interface", "network", "version", "source", "why"], rows)


def _between(report: Report) -> Iterator[str]:
    """Which pairs were tried, what failed, and how fast the network is."""
    lines = "".join(draw_plain(part) for part in (reach_lines(report), measured_lines(report)))
    if lines:
        yield "## Between the nodes\n\n"
        yield block(lines.splitlines(), "text")


def _comparison(report: Report) -> Iterator[str]:
    if report.comparison is not None:
        yield "## As-is and advised\n\n"
        yield block(draw_plain(comparison_lines(report)).splitlines(), "text")


def _bench(report: Report) -> Iterator[str]:
    bench = report.bench
    if bench is None:
        return
    yield f"## Benchmark\n\n{paragraph(bench_setting(bench))}\n\n"
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


def _groups(report: Report) -> Iterator[str]:
    lines = [*draw_plain(group_lines(report)).splitlines(), *draw_plain(mesh_lines(report)).splitlines()]
    if lines:
        yield "## Parallel groups\n\n"
        yield block(lines, "text")


def _used(report: Report) -> Iterator[str]:
    log = report.log
    if log is None:
        return
    names = ", ".join(code(file.name) for file in log.files)
    yield f"## Logs\n\n{plural(len(log.files), 'file')}{': ' if names else ''}{names}\n\n"
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


def _checks(report: Report) -> Iterator[str]:
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
