"""Tables of jobs, as Slurm and Kubernetes print them: what their rows say of the job whose log this is. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.events import CommInit, Log, Remark


@once_per_subject
def rows_of_success(log: Log) -> tuple[Remark, ...]:
    """Return the rows which say that the job succeeded; none if another row leaves that open."""
    rows = _rows(log)
    return (
        *_by_kubernetes(log, [row for row in rows if "job" in row.values]),
        *_by_slurm([row for row in rows if "slurm" in row.values]),
    )


def rows_of_failure(log: Log) -> tuple[Remark, ...]:
    """Return the rows in which Kubernetes says last that the job of the log failed, or the only job of the table."""
    last = _last_of_each(row for row in _rows(log) if "job" in row.values)
    return tuple(
        row for row in last if row.values.get("state") == "Failed" and (len(last) == 1 or _is_of(log, row))
    )


def _rows(log: Log) -> list[Remark]:
    return [event for event in log.events if isinstance(event, Remark) and event.topic == "job-row"]


def _by_kubernetes(log: Log, rows: list[Remark]) -> list[Remark]:
    """Return the last row of the job by which pods of the log are named, if it succeeded after the log began."""
    known_by = max((event.place.line for event in log.events if isinstance(event, CommInit)), default=0)
    last = _last_of_each(row for row in rows if row.place.line > known_by)
    return [row for row in last if row.values.get("state") == "Succeeded" and _is_of(log, row)]


def _by_slurm(rows: list[Remark]) -> list[Remark]:
    """Return the rows of the newest job itself, if neither it nor one of its steps is in another state."""
    newest = max((int(row.values["slurm"]) for row in rows), default=0)
    of_job = [row for row in rows if int(row.values["slurm"]) == newest]
    if any(row.values["ended"] != "COMPLETED" for row in of_job):
        return []
    return [row for row in of_job if "." not in row.values.get("part", "")]


def _last_of_each(rows: Iterable[Remark]) -> list[Remark]:
    return list({row.values["job"]: row for row in rows}.values())


def _is_of(log: Log, row: Remark) -> bool:
    """Return True if a pod of the log has the name of the job, and its role and number after it."""
    return any((event.place.host or "").startswith(f"{row.values['job']}-") for event in log.events)
