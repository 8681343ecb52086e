"""Tables of jobs, as Slurm and Kubernetes print them: what their rows say of the job whose log this is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.events import CommInit, Log, Remark

# A pod's name: the job's, the role's where its operator has roles, and what Kubernetes appends to tell pods apart.
_POD = re.compile(
    r"(?P<job>.+)-(?P<role>master|worker|launcher|chief|ps|evaluator|node|mpimaster|mpiworker|head|server|trainer|replica)"
    r"(?:-[a-z0-9]{1,10}){1,3}$"
)
_SUFFIX = re.compile(r"(?:-\d{1,5}){0,2}(?:-[bcdfghjklmnpqrstvwxz2456789]{5})?$")
_LAUNCHERS = ("launcher", "mpimaster")  # who starts the workers, and ends with them: of MPI
_DONE = ("Completed", "Succeeded")
_ON_THE_WAY = ("Running", "Pending", "ContainerCreating", "PodInitializing", "Terminating")

_REQUEUED = ("PREEMPTED", "NODE_FAIL", "REQUEUED", "PENDING", "RUNNING")  # states that another row may follow


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


def pods_completed(log: Log) -> tuple[Remark, ...]:
    """Return the rows of the pods of the job whose log this is, if they say that it ended well.

    All its pods have completed, or its launcher while its workers wait. A pod that failed or was started again, and one
    that the log names and the list does not, leave it open. So does a list that stands before the last start of NCCL.
    """
    jobs = {job_of(host) for host in _speakers(log)}
    begun = max((event.place.line for event in log.events if isinstance(event, CommInit)), default=0)
    of_job = [row for row in pod_rows(log) if job_of(row.values["pod"]) in jobs]
    if len(log.files) != 1 or len({job_of(row.values["pod"]) for row in of_job}) != 1:
        return ()
    if any(_is_bad(row) for row in of_job) or of_job[-1].place.line < begun:
        return ()
    last = {row.values["pod"]: row for row in of_job if row.place.line > begun}
    done = {pod for pod, row in last.items() if row.values["state"] in _DONE}
    waiting = {pod for pod, row in last.items() if row.values["state"] == "Running"}
    heard = {host for host in _speakers(log) if job_of(host) == job_of(of_job[-1].values["pod"])}
    is_over = done == set(last) or (done | waiting == set(last) and any(map(_is_launcher, done)))
    return tuple(last.values()) if is_over and all(map(set(last).__contains__, heard)) else ()


def pods_failed(log: Log) -> tuple[Remark, ...]:
    """Return the rows of pods of the job whose log this is that say last that the pod failed."""
    jobs = {job_of(host) for host in _speakers(log)}
    last = {row.values["pod"]: row for row in pod_rows(log)}
    return tuple(row for row in last.values() if is_failed(row) and job_of(row.values["pod"]) in jobs)


@once_per_subject
def pod_rows(log: Log) -> tuple[Remark, ...]:
    """Return all rows of lists of pods, in the order of the log."""
    return tuple(event for event in log.events if isinstance(event, Remark) and event.topic == "pod-row")


def is_failed(row: Remark) -> bool:
    """Return True if the pod did neither complete nor is on its way."""
    state = row.values["state"]
    return state not in (*_DONE, *_ON_THE_WAY) and not state.startswith("Init:")


def job_of(pod: str) -> str:
    """Return the name of the job of a pod."""
    match = _POD.match(pod)
    return match["job"] if match is not None else _SUFFIX.sub("", pod, count=1)


def _is_bad(row: Remark) -> bool:
    return is_failed(row) or row.values["restarts"] != "0"


def _is_launcher(pod: str) -> bool:
    match = _POD.match(pod)
    return match is not None and match["role"] in _LAUNCHERS


def _speakers(log: Log) -> set[str]:
    """Return the hosts that the lines of the log name as theirs, but not the lists of pods."""
    listed = {(row.place.file, row.place.line) for row in pod_rows(log)}
    hosts = {process.host for process in log.processes}
    hosts |= {
        event.place.host or "" for event in log.events if (event.place.file, event.place.line) not in listed
    }
    hosts |= {place.host or "" for words in log.words for place in (words.first, words.last)}
    return hosts - {""}


def _rows(log: Log) -> list[Remark]:
    return [event for event in log.events if isinstance(event, Remark) and event.topic == "job-row"]


def _by_kubernetes(log: Log, rows: list[Remark]) -> list[Remark]:
    """Return the last row of the job by which pods of the log are named, if it succeeded after the log began."""
    known_by = max((event.place.line for event in log.events if isinstance(event, CommInit)), default=0)
    last = _last_of_each(row for row in rows if row.place.line > known_by)
    return [row for row in last if row.values.get("state") == "Succeeded" and _is_of(log, row)]


def _by_slurm(rows: list[Remark]) -> list[Remark]:
    """Return the rows of the newest job itself, if neither it nor one of its steps is in another state.

    Of a part that was requeued (`sacct --duplicates`) the last row counts.
    """
    newest = max((int(row.values["slurm"]) for row in rows), default=0)
    of_part: dict[str, Remark] = {}
    for row in rows:
        before = of_part.get(part := row.values.get("part", ""))
        is_final = before is not None and before.values["ended"] not in _REQUEUED
        if int(row.values["slurm"]) == newest and not (is_final and row.values["ended"] == "COMPLETED"):
            of_part[part] = row
    of_job = list(of_part.values())
    if any(row.values["ended"] != "COMPLETED" for row in of_job):
        return []
    return [row for row in of_job if "." not in row.values.get("part", "")]


def _last_of_each(rows: Iterable[Remark]) -> list[Remark]:
    return list({row.values["job"]: row for row in rows}.values())


def _is_of(log: Log, row: Remark) -> bool:
    """Return True if a pod of the log has the name of the job, and its role and number after it."""
    return any((event.place.host or "").startswith(f"{row.values['job']}-") for event in log.events)
