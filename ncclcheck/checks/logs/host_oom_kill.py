"""NC927 host-oom-kill."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import alarms, culprits, exits, remarks
from ncclcheck.model.events import Event, Log, Remark
from ncclcheck.model.finding import Fix

_SIGKILL = -9
_BY_LAUNCHER = re.compile(
    r"closing signal|CANCELLED|by user|Sending|Terminating|scancel|SIGTERM|killed after|Epoch \d+ terminated",
    re.IGNORECASE,
)


@cause(
    "NC927",
    "host-oom-kill",
    "A node ran out of host memory",
    explains=("rank-exception", "uneven-inputs", "slow-rank-timeout", "cuda-oom"),
    fixes=(
        Fix(
            "raise the job's host memory (Slurm --mem, the pod's memory limit), or use less: fewer "
            "num_workers, smaller prefetch, load checkpoints once per node",
            (
                "dmesg -T | grep -i -A3 oom",
                "free -g",
                "sacct -j JOBID -o JobID,MaxRSS,State",
            ),
        ),
    ),
)
def host_oom_kill(log: Log) -> Iterator[Suspect]:
    """Host memory was exhausted, and the kernel, the container or the batch system killed a worker.

    ## Why it matters
    A worker that ends with signal 9 leaves no traceback; the other ranks report a closed connection.

    ## How to fix
    Give the job more host memory, or use less: fewer data loader workers, smaller caches, no copies of the
    model on every rank.

    ## Source
    Linux mm/oom_kill.c, Slurm's task/cgroup messages, kubelet's OOMKilled, shells' exit code 137.
    """
    kills = list(remarks(log, "host-oom"))
    killed = [worker_exit for worker_exit in exits(log) if worker_exit.exit_code == _SIGKILL]
    signs = [remark for remark in remarks(log, "killed") if not _BY_LAUNCHER.search(remark.text)]
    if kills:
        yield suspect(
            _summary(kills),
            [*kills, *killed],
            hosts=culprits(
                log, [worker_exit.place for worker_exit in killed] or [remark.place for remark in kills]
            ),
            # who was killed at work had a port
            explains=("rank-exception", "uneven-inputs", "slow-rank-timeout", "cuda-oom", "port-in-use")
            if killed
            else None,
        )
    elif refused := remarks(log, "host-no-memory"):
        yield suspect(
            "Host memory is exhausted, or limited for this process: an allocation failed.",
            refused,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in refused[:1]]),
        )
    elif signs or killed:
        yield suspect(
            "A worker was killed with signal 9 and left no traceback. Usually the kernel sends it when host memory is "
            "exhausted.",
            [*signs, *killed],
            confidence="likely"
            if _is_alone(log, [*killed, *signs]) and not _follows(log, signs, killed)
            else "possible",
            hosts=culprits(
                log,
                [sign.place for sign in (*killed, *signs) if sign.place.rank is not None or sign.place.host],
            ),
        )


def _is_alone(log: Log, ends: Sequence[Event]) -> bool:
    """True if one rank alone was killed, or memory figures stand in the log: many at once are ended from outside."""
    ranks = {end.place.rank for end in ends if end.place.rank is not None}
    return len(ranks) <= 1 or bool(remarks(log, "host-memory"))


def _follows(log: Log, signs: Sequence[Event], killed: Sequence[Event]) -> bool:
    """Return True if something else failed before a bare `Killed`: the launcher ends what is left."""
    if remarks(log, "scheduler-end"):
        return True
    if killed or not signs:
        return False
    first = signs[0].place
    return any(
        event.place.file == first.file and event.place.line < first.line
        for event in alarms(log)
        if not (
            isinstance(event, Remark)
            and (event.topic in ("host-oom", "killed") or event.values.get("cause") == "host-oom-kill")
        )
    )


def _summary(kills: Sequence[Remark]) -> str:
    if all("CPUAllocator" in remark.text for remark in kills):
        return "Host memory is exhausted, or limited for this process: an allocation failed."
    return "Host memory is exhausted, and a worker was killed."
