"""From the logs of a job to the report on them: read, ask all causes, rank, conclude."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ncclcheck.checks.log_outcome import explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.files import read_logs
from ncclcheck.model.events import Log
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.explain import explain_report
from ncclcheck.run.conclude import Clock, start_clock


def explain_files(names: Sequence[str]) -> Report:
    """The report on the files. Raises UsageError where not one of them could be read."""
    clock = start_clock()
    return explain_log(read_logs(names), clock)


def explain_log(log: Log, clock: Clock) -> Report:
    """The report on a log that was read; the same log gives the same report, times apart."""
    runs = run_checks(Snapshot(nodes=(), log=log), Selection(), "log")
    return explain_report(
        log, runs, explained(log, runs), created=clock.created, elapsed_s=time.monotonic() - clock.started
    )
