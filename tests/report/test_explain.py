"""The report of `explain`: verdict, reasons, and what is normal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.logs._outcome import explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.explain import explain_report
from tests.checks.logs.explaining import read


def report_on(text: str, *, dropped: int = 0) -> Report:
    log = replace(read(text), dropped=dropped)
    runs = run_checks(Snapshot(nodes=(), log=log), Selection(), "log")
    return explain_report(log, runs, explained(log, runs), created="now", elapsed_s=0.0)


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("training finished\n", "pass", 0),
        ("ValueError: x\n", "fail", 1),
        ("ncclSystemError: failed\n", "unknown", 3),
        ("", "unknown", 3),
    ],
)
def test_the_verdict(text: str, status: str, code: int) -> None:
    verdict = report_on(text).verdict
    assert (verdict.status, verdict.exit_code) == (status, code)
    assert verdict.reasons


@pytest.mark.parametrize(("text", "code"), [("training finished\n", 3), ("ValueError: x\n", 1)])
def test_a_log_of_which_lines_were_not_looked_at_is_not_fine_and_says_so(text: str, code: int) -> None:
    verdict = report_on(text, dropped=12).verdict
    assert verdict.exit_code == code
    assert " ".join(verdict.reasons).count("12 lines that may mean something were not looked at") == 1


def test_what_shows_no_sign_in_a_log_claims_no_more() -> None:
    checks = report_on("training finished\n").checks
    assert len(checks) > 40
    assert {(entry.outcome, entry.reason) for entry in checks} == {
        ("not_applicable", "no sign of it in these logs")
    }


def test_normal_lines_stand_once_with_their_reason() -> None:
    line = "n1:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"
    report = report_on(line * 3 + line.replace("dev 0", "dev 1"))
    assert report.log is not None
    assert [evidence.expected for evidence in report.log.harmless] == [
        "these GPUs have no NVLink SHARP; other algorithms are used"
    ]
