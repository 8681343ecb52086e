"""The Report of `watch`: its checks over what was seen of the job, and the exit code that the job ends with."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

import ncclcheck
from ncclcheck.model.exit_code import FOUND, PASS
from ncclcheck.model.finding import CheckRun
from ncclcheck.model.job.watched import Watch
from ncclcheck.model.report import SCHEMA_VERSION, Advice, CheckEntry, Report, Tool, Verdict

NOTHING_FOUND = "nothing was found"


class JobEnd(Struct, frozen=True):
    """How the job ended: the exit code that watch ends with, and why in words. None: it runs."""

    exit_code: int
    reason: str


def watch_report(
    watch: Watch, runs: Sequence[CheckRun], end: JobEnd | None, *, created: str, elapsed_s: float
) -> Report:
    """Build the report. While the job runs its exit code is that of the findings: 1 with an error, else 0."""
    findings = tuple(finding for run in runs for finding in run.findings)
    failed = any(finding.severity == "error" for finding in findings)
    reason = ", ".join(finding.slug for finding in findings) or NOTHING_FOUND
    code = end.exit_code if end is not None else FOUND if failed else PASS
    reasons = ((f"{end.reason}; {reason}",) if end is not None else (f"the job runs; {reason}",)) + tuple(
        f"the check {run.slug} crashed, which is a bug in ncclcheck: {run.reason}"
        for run in runs
        if run.outcome == "crashed"
    )
    return Report(
        schema_version=SCHEMA_VERSION,
        tool=Tool("ncclcheck", ncclcheck.__version__),
        command="watch",
        created=created,
        elapsed_s=round(elapsed_s, 3),
        verdict=Verdict("fail" if failed or code else "pass", code, reasons),
        nodes=(),
        checks=tuple(
            CheckEntry(run.code, run.slug, run.title, run.outcome, run.reason, run.seconds) for run in runs
        ),
        findings=findings,
        probes=(),
        nccl=(),
        advice=Advice(),
        watch=watch,
    )
