"""What the watcher found, told: a sentence on standard error, and report files in its folder and where asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.cli.outputs import write_files
from ncclcheck.cli.screen import write_error
from ncclcheck.measure.watching.words import told
from ncclcheck.model.job.watched import Watch
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.watch import JobEnd, watch_report
from ncclcheck.run.judge import RunClock

_REPORTS = ("report.json", "report.txt")


def tell(watch: Watch, folder: Path, clock: RunClock, *, quiet: bool, aloud: bool = True) -> None:
    """Say the decision on standard error, and write the report of now to the folder.

    Not aloud: node 0 says it for all nodes, and only the report is written here.
    """
    if watch.decision == "ok":
        if not quiet and aloud:
            write_error(f"watch: {watch.remarks[0] if watch.remarks else told(watch)}")
        return
    if aloud and (watch.decision != "quiet" or not quiet):
        write_error(f"watch: {told(watch)}")
        for remark in watch.remarks:
            write_error(f"watch: {remark}")
        write_error(f"watch: more in {folder}")
    report_of(watch, None, clock, {"output": _files(folder)})


def report_of(watch: Watch, end: JobEnd | None, clock: RunClock, given: Mapping[str, Any]) -> Report:
    """Build the report and write it to the files of `--output`."""
    snapshot = Snapshot(nodes=(), watch=watch)
    runs = tuple(run_check(check, snapshot) for check in all_checks("job"))
    report = watch_report(watch, runs, end, created=clock.created, elapsed_s=time.monotonic() - clock.started)
    write_files(report, None, given)
    return report


def last_outputs(watch: Watch, given: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return `given` for the last report: its files are also those of the folder, where something was found."""
    own = _files(folder) if watch.decision != "ok" else ()
    return {**given, "output": (*given.get("output", ()), *own)}


def _files(folder: Path) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in _REPORTS)
