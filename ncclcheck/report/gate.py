"""What the gate makes of each check: what every format shows as failed, as passed, and as neither."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.finding import SEVERITIES, Finding
from ncclcheck.model.report import CheckEntry, Report

Judged: TypeAlias = Literal["passed", "failed", "error", "skipped"]


class CheckCase(Struct, frozen=True):
    """One check with its findings, as a CI system counts it.

    failed: it found something that the gate counts. error: it crashed, or had to run and did not. skipped: neither red
    nor green: what it found is below the gate, or it could not tell, or did not apply. Only what passed is passed.
    """

    code: str
    slug: str
    title: str
    judged: Judged
    why: str
    seconds: float
    findings: tuple[Finding, ...] = ()


def check_cases(report: Report) -> list[CheckCase]:
    """Every check of the report, and every finding of it in exactly one of them, also where its check is not listed."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        found.setdefault((finding.code, finding.slug), []).append(finding)
    cases = [_case(report, entry, tuple(found.pop((entry.code, entry.slug), ()))) for entry in report.checks]
    for (code, slug), findings in found.items():
        counts = is_counted(report, findings)
        title = "a check that is not in the list"
        cases.append(
            CheckCase(code, slug, title, "failed" if counts else "skipped", "", 0.0, tuple(findings))
        )
    return cases


def _case(report: Report, entry: CheckEntry, findings: tuple[Finding, ...]) -> CheckCase:
    judged, why = _judged(report, entry, findings)
    return CheckCase(entry.code, entry.slug, entry.title, judged, why, entry.seconds, findings)


def _judged(report: Report, entry: CheckEntry, findings: Sequence[Finding]) -> tuple[Judged, str]:
    if is_counted(report, findings):
        return "failed", entry.reason
    if entry.outcome == "crashed":
        return "error", f"a bug in ncclcheck, please report it: {entry.reason}"
    words_by_outcome = {"unknown": "unknown", "not_applicable": "not applicable", "ignored": "ignored"}
    if entry.outcome in words_by_outcome:
        required = entry.code in report.verdict.required
        why = words_by_outcome[entry.outcome] + (f": {entry.reason}" if entry.reason else "")
        return ("error", f"required, but {why}") if required else ("skipped", why)
    if findings or entry.outcome == "found":
        return "skipped", entry.reason
    return "passed", entry.reason


def is_counted(report: Report, findings: Iterable[Finding]) -> bool:
    """Return True if the gate counts one of the findings."""
    if report.verdict.fail_on == "never":
        return False
    counted = SEVERITIES[: SEVERITIES.index(report.verdict.fail_on) + 1]
    return any(finding.severity in counted for finding in findings)
