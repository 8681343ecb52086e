"""The report for people: worst first, equal nodes folded, and a last line with the exit code and its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncclcheck.launch.launcher_registry import label_of
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import SEVERITIES
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.launch import Launch
from ncclcheck.model.report import NodeEntry, Report
from ncclcheck.report.sections import IN_TERMINAL
from ncclcheck.report.text.explain_text import explain_header
from ncclcheck.report.text.page import BLANK, VERDICT_STYLE, Line, Span, draw, line
from ncclcheck.report.text.reach_text import authentication_words

# A log is not the machine: that most causes have no sign in it is not worth a line each.
_NOT_OF_LOGS = ("not-known", "checks")


def render(report: Report, *, verbose: int = 0, width: int | None = None, color: bool = False) -> str:
    """Return the report as text, wrapped at `width` columns (None: not at all).

    `verbose` 1 adds what passed or did not apply, all evidence, and each node's NCCL; it never takes anything away.
    The last line is `exit CODE: REASON`.
    """
    return draw(page(report, verbose), width=width, color=color)


def page(report: Report, verbose: int) -> Iterator[Line]:
    """Yield the lines of the report, from the header to the exit code."""
    log = report.log
    yield from header_lines(report) if log is None else (explain_header(report, log, verbose),)
    for section in IN_TERMINAL:
        lines = list(section.text(report, verbose)) if log is None or section.name not in _NOT_OF_LOGS else []
        if lines:
            yield BLANK
            yield from lines
    yield BLANK
    if log is None:
        yield from _summary(report)
    yield from _verdict(report)


def header_lines(report: Report) -> Iterator[Line]:
    """Tool, command, nodes, launcher and NCCL version; and what was not looked at, if only one node was."""
    if report.watch is not None:
        yield line(Span(f"{report.tool.name} {report.tool.version} · {report.command}", "bold"))
        return
    launches = [launch for node in report.nodes if (launch := _launch(node)) is not None]
    parts = [f"{report.tool.name} {report.tool.version}", report.command, _nodes(report, launches)]
    parts += sorted({label_of(launch.source) for launch in launches})
    versions = sorted({entry.version for entry in report.nccl if entry.version} | _in_image(report))
    parts.append(f"NCCL {', '.join(versions)}" if versions else "NCCL unknown")
    yield line(Span(" · ".join(parts), "bold"))
    if report.command == "node":
        return
    if len(report.nodes) == 1 and any(launch.source == "none" for launch in launches):
        yield line("No launcher and no --nnodes: only this node was looked at.")


def _in_image(report: Report) -> set[str]:
    """Return the NCCL versions of an image, which has no network to choose."""
    facts = [node.facts for node in report.nodes if node.facts and report.of == "image"]
    software = [fact.software for fact in facts if not isinstance(fact.software, Missing)]
    return {versions.nccl for versions in software if not isinstance(versions.nccl, Missing)}


def _launch(node: NodeEntry) -> Launch | None:
    facts = node.facts
    return None if not facts or isinstance(facts.launch, Missing) else facts.launch


def _nodes(report: Report, launches: list[Launch]) -> str:
    silent = sum(node.status == "silent" for node in report.nodes)
    claimed_nodes = max((launch.nnodes for launch in launches), default=0)
    if not silent and len(report.nodes) == 1 and claimed_nodes > 1:
        most = "at most " if any(launch.told != "place" for launch in launches) else ""
        return f"1 of {most}{claimed_nodes} nodes, seen from {report.nodes[0].host} alone"
    count = plural(len(report.nodes), "node" if report.of == "nodes" else "image")
    return f"{count}, {silent} silent" if silent else count


def _summary(report: Report) -> Iterator[Line]:
    outcomes = Counter(entry.outcome for entry in report.checks)
    severities = Counter(finding.severity for finding in report.findings)
    counts = [f"{outcomes['passed']} passed"]
    counts += [
        plural(severities[severity], severity) if severity != "info" else f"{severities[severity]} info"
        for severity in SEVERITIES
    ]
    counts += [f"{outcomes[word]} {word.replace('_', ' ')}" for word in ("crashed", "unknown", "ignored")]
    counts.append(f"{outcomes['not_applicable']} not applicable")
    counted_outcomes = ", ".join(count for count in counts if not count.startswith("0 "))
    subject = f"{plural(len(report.checks), 'check')}: {counted_outcomes}" if report.checks else "no checks"
    yield line(f"{subject} · {report.elapsed_s:.1f} s · 'ncclcheck checks SLUG' explains a check")
    if not isinstance(report.coverage, Missing):
        coverage = report.coverage
        yield line(
            f"reach: {coverage.pairs_planned} of {coverage.pairs_possible} directed pairs of nodes ({coverage.scheme})"
        )
    if words := authentication_words(report):
        yield line(words)


def _verdict(report: Report) -> Iterator[Line]:
    first, *more = report.verdict.reasons or ("no reason was given",)
    for reason in more:
        yield line(f"also: {reason}")
    style = VERDICT_STYLE[report.verdict.status]
    yield line(Span(f"exit {report.verdict.exit_code}", style), f": {first}", wrap=False)
