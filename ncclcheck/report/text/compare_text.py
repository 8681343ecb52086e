"""What changed between two reports, for people (text, Markdown) and programs (JSON)."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.units import format_number, format_size
from ncclcheck.report.compare import Changes, FindingChange, PointChange, Side
from ncclcheck.report.markdown.markdown_text import code, md, paragraph, table
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import BLANK, Line, Span, draw, line

_STYLE = {"gained": "bold red", "worse": "bold red", "gone": "bold green", "milder": "bold green"}
_POINT = {"loss": "slower", "faster": "faster", "same": "the same", "not-known": "inconclusive"}


def changes_json(changes: Changes) -> str:
    """Return the document, indented, with a final newline."""
    return encode_pretty(changes) + "\n"


def changes_text(changes: Changes, *, width: int | None = None, color: bool = False) -> str:
    """As text. The last line is `exit CODE: REASON`."""
    return draw(_page(changes), width=width, color=color)


def _page(changes: Changes) -> Iterator[Line]:
    yield line(Span("old", "bold"), f"  {_side(changes.old)}")
    yield line(Span("new", "bold"), f"  {_side(changes.new)}")
    for reason in changes.different_jobs:
        yield line(Span("different jobs", "bold yellow"), f"  {reason}")
    for section in (
        _findings(changes),
        _checks(changes),
        _bandwidth(changes),
        _nodes(changes),
        _values(changes),
    ):
        lines = list(section)
        if lines:
            yield BLANK
            yield from lines
    yield BLANK
    yield from _verdict(changes)


def _side(side: Side) -> str:
    outcome = f"{side.status}, exit code {side.exit_code}, {plural(side.nodes, 'node')}"
    return f"{side.command} of {side.created}: {outcome} (ncclcheck {side.version})"


def _findings(changes: Changes) -> Iterator[Line]:
    for finding in changes.findings:
        yield line(Span(finding.fate, _STYLE.get(finding.fate, "bold magenta")), f"  {_finding(finding)}")
        yield line(finding.summary, indent=2)
    if changes.findings_kept:
        yield line(f"{plural(changes.findings_kept, 'finding')} as before")


def _finding(change: FindingChange) -> str:
    where = f"  on {fold_hosts(change.hosts)}" if change.hosts else ""
    why = f"  ({change.why})" if change.why else ""
    return f"{change.severity}  {change.code} {change.slug}{where}{why}"


def _checks(changes: Changes) -> Iterator[Line]:
    for check in changes.checks:
        style = "bold red" if check.counts else "bold"
        reason = f": {check.reason}" if check.reason else ""
        words = f"  {check.before.replace('_', ' ')} before, now {check.after.replace('_', ' ')}{reason}"
        yield line(Span(f"{check.code} {check.slug}", style), words)


def _bandwidth(changes: Changes) -> Iterator[Line]:
    if changes.bandwidth_note:
        yield line(changes.bandwidth_note)
    if not changes.bandwidth:
        return
    yield line(Span("bus bandwidth", "bold"), " (GB/s)")
    rows = [("op", "size", "before", "now", "change", "chance", ""), *map(_point, changes.bandwidth)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        style = "bold red" if row[-1].startswith("slower") and number else ""
        yield line("  ".join(cells), "  ", Span(row[-1], style), indent=2, wrap=False)


def _point(change: PointChange) -> tuple[str, ...]:
    is_known = change.verdict != "not-known" or not change.why
    return (
        change.op,
        format_size(change.size_bytes) if change.size_bytes > 0 else str(change.size_bytes),
        format_number(change.before_gb_s),
        format_number(change.after_gb_s),
        f"{0.0 - change.lost:+.1%}" if is_known else "",
        f"{change.noise:.1%}" if is_known else "",
        _POINT[change.verdict] + (f": {change.why}" if change.why else ""),
    )


def _nodes(changes: Changes) -> Iterator[Line]:
    for what, hosts in (
        ("nodes only now", changes.nodes_gained),
        ("nodes only before", changes.nodes_lost),
        ("silent now", changes.silent_now),
    ):
        if hosts:
            yield line(f"{what}: {fold_hosts(hosts)}")


def _values(changes: Changes) -> Iterator[Line]:
    for value in changes.values:
        where = f"  on {fold_hosts(value.hosts)}" if value.hosts else ""
        yield line(Span(value.what, "bold"), f"  {value.before} before, now {value.after}{where}")


def _unknown_bandwidths(changes: Changes) -> str:
    """Return which bandwidths cannot be compared: they did not pass."""
    unknown = sum(change.verdict == "not-known" for change in changes.bandwidth)
    if unknown:
        return f" that can be told; {unknown} of {plural(len(changes.bandwidth), 'point')} cannot be compared"
    return " that can be told; the bandwidths cannot be compared" if changes.bandwidth_note else ""


def _verdict(changes: Changes) -> Iterator[Line]:
    if not changes.regressions:
        yield line(
            Span("exit 0", "bold green"), f": nothing got worse{_unknown_bandwidths(changes)}", wrap=False
        )
        return
    first, *more = changes.regressions
    for reason in more:
        yield line(f"also: {reason}")
    yield line(Span("exit 1", "bold red"), f": {first}", wrap=False)


def changes_markdown(changes: Changes) -> str:
    """As Markdown: what is worse first, then everything that changed."""
    return "\n".join(text for text in ("".join(part) for part in _markdown(changes)) if text)


def _markdown(changes: Changes) -> Iterator[Iterator[str]]:
    yield _md_head(changes)
    yield _md_table(
        "Findings",
        ["", "finding", "hosts", "summary"],
        [
            [
                f"{finding.fate}: {finding.severity}",
                md(f"{finding.code} {finding.slug}"),
                code(fold_hosts(finding.hosts)),
                md(_words(finding)),
            ]
            for finding in changes.findings
        ],
    )  # fmt: skip
    yield _md_table(
        "Checks",
        ["check", "before", "now", "why"],
        [
            [md(f"{check.code} {check.slug}"), check.before, check.after, md(check.reason)]
            for check in changes.checks
        ],
    )
    points = [list(map(md, _point(change))) for change in changes.bandwidth]
    yield _md_table("Bus bandwidth (GB/s)", ["op", "size", "before", "now", "change", "chance", ""], points)
    yield _md_table(
        "Versions, settings, choices",
        ["what", "before", "now", "hosts"],
        [
            [
                md(value.what),
                code(value.before),
                code(value.after),
                code(fold_hosts(value.hosts)) if value.hosts else "all",
            ]
            for value in changes.values
        ],
    )


def _words(change: FindingChange) -> str:
    return f"{change.summary} ({change.why})" if change.why else change.summary


def _md_head(changes: Changes) -> Iterator[str]:
    worse = len(changes.regressions)
    yield f"# {'❌' if worse else '✅'} {plural(worse, 'thing') if worse else 'Nothing'} got worse"
    yield f"{'' if worse else _unknown_bandwidths(changes)}\n\n"
    yield f"- old: {md(_side(changes.old))}\n- new: {md(_side(changes.new))}\n"
    for reason in changes.different_jobs:
        yield f"- different jobs: {md(reason)}\n"
    for reason in changes.regressions:
        yield f"- **worse**: {md(reason)}\n"
    for node in _nodes(changes):
        yield f"- {paragraph(''.join(span.text for span in node.spans))}\n"
    if changes.bandwidth_note:
        yield f"- {paragraph(changes.bandwidth_note)}\n"


def _md_table(title: str, header: list[str], rows: list[list[str]]) -> Iterator[str]:
    if rows:
        yield f"## {title}\n\n"
        yield table(header, rows)
