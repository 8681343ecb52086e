"""What the gate makes of each check."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.finding import CheckRun, Severity
from ncclcheck.report.gate import check_cases, is_counted
from tests.report.reports import check_run, finding, found, report


def judged(run: CheckRun, **options: Any) -> str:
    (case,) = check_cases(report([run], **options))
    return case.judged


@pytest.mark.parametrize(
    ("severity", "fail_on", "expected"),
    [
        ("error", "error", "failed"),
        ("warning", "error", "skipped"),
        ("warning", "warning", "failed"),
        ("info", "warning", "skipped"),
        ("error", "never", "skipped"),
    ],
)
def test_a_finding_fails_its_check_where_the_gate_counts_it(
    severity: Severity, fail_on: str, expected: str
) -> None:
    assert judged(found(finding("mtu-differs", severity=severity)), fail_on=fail_on) == expected


def test_only_what_passed_is_passed() -> None:
    assert judged(check_run("mtu-differs")) == "passed"
    for outcome in ("unknown", "not_applicable", "ignored"):
        assert judged(check_run("mtu-differs", outcome)) == "skipped"
    assert judged(check_run("mtu-differs", "crashed")) == "error"


@pytest.mark.parametrize("outcome", ["unknown", "not_applicable", "ignored"])
def test_what_had_to_run_and_did_not_is_an_error(outcome: str) -> None:
    made = report([check_run("mtu-differs", outcome, "no facts")], require=["mtu-differs"])  # type: ignore[arg-type]
    (case,) = check_cases(made)
    assert case.judged == "error"
    assert case.why.startswith("required, but ")
    assert made.verdict.exit_code == 3


def test_a_finding_whose_check_is_not_listed_is_in_a_case_of_its_own() -> None:
    made = replace(report(), findings=(finding("mtu-differs"),))
    assert [case.slug for case in check_cases(made)] == ["node-silent", "mtu-differs"]
    assert is_counted(made, made.findings)
