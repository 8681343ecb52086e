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
from ncclcheck.report.matrix.matrix_text import matrix_lines
from ncclcheck.report.soak.soak_text import soak_lines
from ncclcheck.report.text.bench_text import bench_lines
from ncclcheck.report.text.checks_text import quiet_check_lines, unknown_lines
from ncclcheck.report.text.comparison_text import comparison_lines
from ncclcheck.report.text.explain_text import render_explain
from ncclcheck.report.text.findings_text import finding_lines
from ncclcheck.report.text.fleet_text import fleet_lines
from ncclcheck.report.text.groups_text import group_lines
from ncclcheck.report.text.isolation_text import isolation_lines
from ncclcheck.report.text.measured_text import measured_lines
from ncclcheck.report.text.mesh_text import mesh_lines
from ncclcheck.report.text.nccl_text import nccl_lines
from ncclcheck.report.text.page import BLANK, VERDICT_STYLE, Line, Span, draw, line
from ncclcheck.report.text.sections import authentication_words
from ncclcheck.report.text.settings_text import settings_lines
from ncclcheck.report.trials.trials_text import trial_lines


def render(report: Report, *, verbose: int = 0, width: int | None = None, color: bool = False) -> str:
    """Return the report as text, wrapped at `width` columns (None: not at all).

    `verbose` 1 adds what passed or did not apply, all evidence, and each node's NCCL; it never takes anything away.
    The last line is `exit CODE: REASON`.
    """
    if report.log is not None:
        return render_explain(report, report.log, verbose=verbose, width=width, color=color)
    return draw(page(report, verbose), width=width, color=color)


def page(report: Report, verbose: int) -> Iterator[Line]:
    """Yield the lines of the report, from the header to the exit code."""
    yield from header_lines(report)
    for section in (
        finding_lines(report, verbose),
        fleet_lines(report),
        unknown_lines(report, verbose),
        nccl_lines(report, verbose),
        measured_lines(report),
        comparison_lines(report),
        bench_lines(report, verbose),
        group_lines(report),
        trial_lines(report),
        isolation_lines(report),
        matrix_lines(report),
        soak_lines(report),
        mesh_lines(report),
        settings_lines(report),
        quiet_check_lines(report, verbose),
    ):
        lines = list(section)
        if lines:
            yield BLANK
            yield from lines
    yield BLANK
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
    said = max((launch.nnodes for launch in launches), default=0)
    if not silent and len(report.nodes) == 1 and said > 1:
        most = "at most " if any(launch.told != "place" for launch in launches) else ""
        return f"1 of {most}{said} nodes, seen from {report.nodes[0].host} alone"
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
    told = ", ".join(count for count in counts if not count.startswith("0 "))
    subject = f"{plural(len(report.checks), 'check')}: {told}" if report.checks else "no checks"
    yield line(f"{subject} · {report.elapsed_s:.1f} s · 'ncclcheck checks SLUG' explains a check")
    if not isinstance(report.coverage, Missing):
        coverage = report.coverage
        yield line(
            f"reach: {coverage.pairs_planned} of {coverage.pairs_possible} directed pairs of nodes ({coverage.scheme})"
        )
    if len(report.nodes) > 1 and report.fleet is None:
        yield line(authentication_words(report))


def _verdict(report: Report) -> Iterator[Line]:
    first, *more = report.verdict.reasons or ("no reason was given",)
    for reason in more:
        yield line(f"also: {reason}")
    style = VERDICT_STYLE[report.verdict.status]
    yield line(Span(f"exit {report.verdict.exit_code}", style), f": {first}", wrap=False)
