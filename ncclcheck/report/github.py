"""The report as GitHub Actions workflow commands: an annotation per finding, the verdict first.

GitHub shows ten errors, ten warnings and ten notices of a step as annotations; all of them stand in its log. Each line
is a command of its own, so nothing that a host calls itself can start another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from ncclcheck.model.finding import Finding
from ncclcheck.model.report import Report
from ncclcheck.report.sections import asides
from ncclcheck.report.text.checks_text import unknown_lines
from ncclcheck.report.text.findings_text import merged_findings, one_finding
from ncclcheck.report.text.page import draw_plain
from ncclcheck.report.text.plain import plain

Level: TypeAlias = Literal["error", "warning", "notice"]
_LEVELS: dict[str, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def to_github(report: Report) -> str:
    """Return the workflow commands, one per line: the verdict, all findings worst first, the unknowns, and the rest."""
    return "".join(f"{annotation}\n" for annotation in _annotations(report))


def _annotations(report: Report) -> Iterator[str]:
    verdict = report.verdict
    name = f"{report.tool.name} {report.command}"
    yield _command(
        "notice" if verdict.exit_code == 0 else "error",
        f"{name}: {verdict.status}, exit code {verdict.exit_code}",
        "\n".join(plain(reason) for reason in verdict.reasons or ("no reason was given",)),
    )
    for finding in merged_findings(report.findings):
        yield _command(_LEVELS[finding.severity], _title(finding), draw_plain(one_finding(finding, 1)))
    unknown = draw_plain(unknown_lines(report, 1))
    if unknown:
        crashed = any(entry.outcome == "crashed" for entry in report.checks)
        yield _command("error" if crashed else "warning", f"{name}: not known", unknown)
    for title, text in asides(report, 0):
        yield _command("notice", f"{name}: {title}", text)


def _title(finding: Finding) -> str:
    return f"{finding.code} {finding.slug}".strip() or finding.severity


def _command(level: Level, title: str, message: str) -> str:
    return f"::{level} title={escape_property(plain(title))}::{escape_data(message.rstrip())}"


def escape_data(text: str) -> str:
    """`text` as the message of a command (actions/toolkit, packages/core/src/command.ts, escapeData)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """`text` as the value of a command's property (actions/toolkit, packages/core/src/command.ts, escapeProperty)."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
