"""The report of `watch`: while the job runs, and when it has ended."""

from __future__ import annotations

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.job.watched import Watch, WatchedRank
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.text.terminal import render
from ncclcheck.report.watch_report import JobEnd, watch_report

DIED = Watch("died", 1.0, (WatchedRank(1, "b", 9, reason="was killed by SIGKILL"),), (0,))


def _report(watch: Watch, end: JobEnd | None) -> Report:
    snapshot = Snapshot(nodes=(), watch=watch)
    runs = [run_check(check, snapshot) for check in all_checks("job")]
    return watch_report(watch, runs, end, created="2026-01-01T00:00:00+00:00", elapsed_s=1.0)


def test_while_the_job_runs_a_finding_fails_and_nothing_passes() -> None:
    assert _report(DIED, None).verdict.exit_code == 1
    assert _report(Watch("ok"), None).verdict.exit_code == 0


def test_the_exit_code_at_the_end_is_that_of_the_job() -> None:
    report = _report(DIED, JobEnd(137, "the job ended with exit code 137"))
    assert (report.verdict.status, report.verdict.exit_code) == ("fail", 137)
    text = render(report)
    assert text.startswith("ncclcheck ")
    assert "rank 1 on b (pid 9) was killed by SIGKILL, first of all ranks; rank 0 failed after it" in text
    assert text.splitlines()[-1] == "exit 137: the job ended with exit code 137; job-died"
