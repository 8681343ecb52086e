"""The report as Markdown: for GITHUB_STEP_SUMMARY, a merge request, a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.report.markdown.markdown_text import code, md
from ncclcheck.report.sections import SECTIONS, heading
from ncclcheck.report.text.fold import fold_hosts

_MARK = {"pass": "✅", "fail": "❌", "unknown": "❓", "error": "💥"}


def to_markdown(report: Report) -> str:
    """Return the document: the verdict, then each section that the report has."""
    return "\n".join(("".join(_verdict(report)), *_sections(report)))


def _sections(report: Report) -> Iterator[str]:
    for section in SECTIONS:
        text = "".join(section.markdown(report))
        if text:
            yield f"## {heading(section, report)}\n\n{text}"


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
