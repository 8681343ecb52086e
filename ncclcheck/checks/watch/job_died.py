"""NC851 job-died."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.watch._watched import decided
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot

_FIXES = (
    Fix(
        "look at the output of the rank that ended first; those that ended later are its victims. After SIGKILL look "
        "for the kernel's OOM killer",
        ("dmesg -T | grep -i -E 'oom|killed process'", "ncclcheck explain LOG"),
    ),
)


@check("NC851", "job-died", "No rank of the job failed", subject="job")
def job_died(snapshot: Snapshot) -> Iterator[Answer]:
    """Every rank of the watched job ends with exit code 0.

    ## Why it matters
    When one rank fails, the others lose their connection to it and fail too, and the launcher ends the rest: the
    output then names many ranks, and seldom the first one.

    ## How to fix
    Look at the rank that ended first. After an exit code its own traceback says why; SIGKILL comes from the kernel's
    OOM killer, from a limit of the control group, or from the batch system; SIGSEGV and SIGBUS from native code.

    ## Source
    `ncclcheck watch` waits for each rank (pidfd_open(2)) and reads its exit status from /proc before it is collected.
    """
    yield from decided(snapshot, ("died",), "error", _FIXES)
