"""The Report of `explain`: findings in order of likelihood, what was really used, and a verdict of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ncclcheck
from ncclcheck.checks.logs._causes import seen
from ncclcheck.checks.logs._outcome import Explained, not_looked_at
from ncclcheck.checks.logs._view import remarks
from ncclcheck.logs.used import used
from ncclcheck.model.events import Log
from ncclcheck.model.finding import CheckRun, Evidence
from ncclcheck.model.report import (
    SCHEMA_VERSION,
    Advice,
    CheckEntry,
    LogReport,
    Report,
    Status,
    Tool,
    Verdict,
)

_MOST_HARMLESS = 40
_NO_SIGN = "no sign of it in these logs"
_VERDICTS: dict[str, tuple[Status, int]] = {
    "healthy": ("pass", 0),
    "named": ("fail", 1),
    "undetermined": ("unknown", 3),
    "nothing": ("unknown", 3),
}


def explain_report(
    log: Log, runs: Sequence[CheckRun], explained: Explained, *, created: str, elapsed_s: float
) -> Report:
    """Build the report. Status pass: the job worked; fail: the cause is named; unknown: the log cannot tell."""
    status, code = _VERDICTS[explained.outcome]
    return Report(
        schema_version=SCHEMA_VERSION,
        tool=Tool("ncclcheck", ncclcheck.__version__),
        command="explain",
        created=created,
        elapsed_s=round(elapsed_s, 3),
        verdict=Verdict(status, code, tuple(_reasons(log, runs, explained))),
        nodes=(),
        checks=tuple(map(_entry, runs)),
        findings=explained.findings,
        probes=(),
        nccl=(),
        advice=Advice(),
        log=LogReport(
            outcome=explained.outcome,
            files=log.files,
            used=used(log),
            harmless=tuple(_harmless(log)),
            dropped_events=log.dropped,
        ),
    )


def _entry(run: CheckRun) -> CheckEntry:
    """Return the check as reported. A log is not the machine: a cause without a sign in it was not ruled out."""
    if run.outcome == "passed":
        return CheckEntry(
            run.code, run.slug, run.title, "not_applicable", run.reason or _NO_SIGN, run.seconds
        )
    return CheckEntry(run.code, run.slug, run.title, run.outcome, run.reason, run.seconds)


def _reasons(log: Log, runs: Sequence[CheckRun], explained: Explained) -> Iterator[str]:
    yield explained.reason
    for file in log.files:
        if file.unread:
            yield f"{file.name} was not read to its end: {file.unread}"
    if log.dropped and not_looked_at(log) not in explained.reason:
        yield not_looked_at(log)
    for run in runs:
        if run.outcome == "crashed":
            yield f"the check {run.slug} crashed, which is a bug in ncclcheck: {run.reason}"


def _harmless(log: Log) -> Iterator[Evidence]:
    """One line of each harmless kind, with the reason why it is normal."""
    kinds: dict[str, Evidence] = {}
    for remark in remarks(log, "harmless"):
        why = remark.values.get("why", "")
        if why not in kinds and len(kinds) < _MOST_HARMLESS:
            line = seen(remark)
            kinds[why] = Evidence(line.hosts, line.subject, line.observed, why, line.source)
    yield from kinds.values()
