"""The watcher's findings as a sentence on standard error, and as report files in its folder and where asked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.cli.outputs import write_files
from ncclcheck.cli.screen import write_error
from ncclcheck.measure.watching.decision_text import sentence_on
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.watched import Watch
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.watch_report import NOTHING_FOUND, JobEnd, watch_report
from ncclcheck.run.judge import RunClock

_REPORTS = ("report.json", "report.txt")
_EXPLANATIONS = ("explain.json", "explain.txt")


class Teller(Struct, frozen=True):
    """Where findings go: the folder of this node, standard error unless `quiet`; the clock of the reports."""

    folder: Path
    clock: RunClock
    quiet: bool


def tell(teller: Teller, watch: Watch, *, aloud: bool = True) -> None:
    """Say the decision on standard error, and write the report of now to the folder.

    Not aloud: node 0 says it for all nodes, and only the report is written here.
    """
    if watch.decision == "ok":
        if not teller.quiet and aloud:
            write_error(f"watch: {watch.remarks[0] if watch.remarks else sentence_on(watch)}")
        return
    if aloud and (watch.decision != "quiet" or not teller.quiet):
        write_error(f"watch: {sentence_on(watch)}")
        for remark in watch.remarks:
            write_error(f"watch: {remark}")
        write_error(f"watch: more in {teller.folder}")
    write_report(report_of(watch, None, teller.clock), {"output": _paths(teller.folder, _REPORTS)})


def tell_cause(teller: Teller, output: Sequence[Path], *, aloud: bool = True) -> Report | None:
    """Have everything that was kept explained, say the cause, and return the report; None where that failed.

    It is written to the folder where it names a cause, or says why it cannot.
    """
    from ncclcheck.cli.watching.explanation import explained_by  # megabytes of patterns

    explained = explained_by(teller.folder, output, teller.clock)
    if isinstance(explained, Missing):
        if aloud:
            write_error(f"watch: what was kept could not be explained: {explained.detail}")
        return None
    if _is_of_a_failure(explained):
        write_files(explained, None, {"output": _paths(teller.folder, _EXPLANATIONS)})
    if aloud and (cause_text := sentence(explained)):
        write_error(f"watch: {cause_text}")
    return explained


def sentence(report: Report) -> str:
    """Return what to say aloud: the cause with its hosts, or "" where the logs name none."""
    if report.log is None or report.log.outcome != "named" or not report.findings:
        return ""
    first = report.findings[0]
    hosts = f" on {', '.join(first.hosts[:8])}" if first.hosts else ""
    line = next((f" Seen: {evidence.observed}" for evidence in first.evidence if evidence.observed), "")
    return f"what was kept names the cause: {first.slug}{hosts}: {first.summary}{line[:300]}"


def report_of(watch: Watch, end: JobEnd | None, clock: RunClock, explained: Report | None = None) -> Report:
    """Return the report; with the causes that `explain` names after what the watcher saw."""
    snapshot = Snapshot(nodes=(), watch=watch)
    runs = tuple(run_check(check, snapshot) for check in all_checks("job"))
    report = watch_report(watch, runs, end, created=clock.created, elapsed_s=time.monotonic() - clock.started)
    if explained is None or not _is_of_a_failure(explained):
        return report
    named = {finding.slug for finding in explained.findings}
    reasons = (reason.removesuffix(f"; {NOTHING_FOUND}") for reason in report.verdict.reasons)
    return replace(
        report,
        findings=(*report.findings, *explained.findings),
        checks=(*report.checks, *(check for check in explained.checks if check.slug in named)),
        verdict=replace(report.verdict, reasons=(*reasons, *explained.verdict.reasons)),
    )


def write_report(report: Report, option_values: Mapping[str, Any]) -> None:
    """Write it to the files of `--output`."""
    write_files(report, None, option_values)


def last_outputs(report: Report, option_values: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return `option_values` for the last report: its files are also those of the folder after a finding or failure."""
    folder_reports = _paths(folder, _REPORTS) if report.findings or report.verdict.exit_code else ()
    return {**option_values, "output": (*option_values.get("output", ()), *folder_reports)}


def _is_of_a_failure(explained: Report) -> bool:
    return explained.log is not None and explained.log.outcome in ("named", "undetermined")


def _paths(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in names)
