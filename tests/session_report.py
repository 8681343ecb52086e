"""The report on a snapshot, as a run of a command would make it."""

from __future__ import annotations

from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.model.report import Advice, Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.build import build_report


def report_of(command: str, snapshot: Snapshot) -> Report:
    """All checks over the snapshot, and their report."""
    return build_report(
        snapshot,
        run_checks(snapshot, Selection()),
        Advice(),
        command=command,
        created="2026-11-22T00:00:00+00:00",
        elapsed_s=9.0,
        fail_on="error",
        require=(),
        interrupted=False,
    )
