"""What shows that a job worked, and that it went on after something went wrong. Pure.

A program that was able to go on says so by what it does next, whatever its last error was: several steps, rates or
answers after it. A log that has words of the program and none of these shows only that it was started.
"""

from __future__ import annotations

from ncclcheck.logs.lines.progress import RECENT
from ncclcheck.model.events import CommInit, Event, Log, LogPosition, PythonException, Remark, WorkerExit

# What the machine, its kernel or the results say stays true, whatever the job writes after it.
_LASTING = frozenset(
    {"wrong-results", "xid", "gpu-lost", "ecc", "iommu-fault", "host-oom", "ib-hardware", "shm", "fabric"}
)


def went_on_after(log: Log, place: LogPosition) -> bool:
    """Return True if the program wrote several lines in the same file after it that only a program at work writes."""
    lines = log.works.get(place.file, ())
    return (len(lines) >= RECENT and lines[0] > place.line) or _was_left_in_order(log, place)


def _was_left_in_order(log: Log, place: LogPosition) -> bool:
    """Return True if a communicator was destroyed later, and no process raised an exception or ended with an error."""
    destroyed = False
    for event in log.events:
        if isinstance(event, PythonException) or (isinstance(event, WorkerExit) and event.exit_code):
            return False
        if isinstance(event, CommInit) and event.place.file == place.file and event.place.line > place.line:
            destroyed = event.stage == "destroy"
    return destroyed


def is_overcome(log: Log, event: Event) -> bool:
    """Return True if the job went on after the event, and the event is nothing that stays true all the same."""
    if isinstance(event, Remark) and (event.topic in _LASTING or event.values.get("ends")):
        killed = event.topic == "host-oom" or event.values.get("cause") == "host-oom-kill"
        return killed and went_on_after(log, event.place) and _ended_well_after(log, event.place)
    return went_on_after(log, event.place)


def _ended_well_after(log: Log, place: LogPosition) -> bool:
    """Return True if the same file says later that the job finished: what was killed was started again."""
    return any(
        isinstance(event, Remark)
        and event.topic in ("finished", "succeeded")
        and event.place.file == place.file
        and event.place.line > place.line
        for event in log.events
    )


def shows_work(log: Log) -> bool:
    """Return True if the log shows that the program worked or finished, or holds nothing but NCCL's own lines."""
    finished = any(
        isinstance(event, Remark) and event.topic in ("finished", "succeeded") for event in log.events
    )
    return finished or bool(log.works) or (not log.words and bool(log.processes))
