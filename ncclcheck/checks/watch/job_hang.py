"""NC850 job-hang."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.watch._watched import decided
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot

_FIXES = (
    Fix(
        "look at the named line: why does that rank not reach the call in which the others wait? Where all ranks are "
        "in the same call, test the links between them",
        ("ncclcheck isolate",),
    ),
)


@check("NC850", "job-hang", "No rank keeps the others waiting", subject="job")
def job_hang(snapshot: Snapshot) -> Iterator[Answer]:
    """The ranks of the running job advance, or wait for one that does.

    ## Why it matters
    One rank that never reaches a collective stops all others, silently, until a timeout of 10 minutes or more, and
    the launcher then ends the culprit before its stack was seen.

    ## How to fix
    Look at the source line that is named. A stopped rank (state T) is continued with `kill -CONT PID`; one in state D
    waits for a file system or a driver, which the kernel's log may name.

    ## Source
    `ncclcheck watch`: no rank moved bytes or woke up for `--patience`, two stacks of each rank are equal, and at least
    one of them is inside a collective (py-spy).
    """
    yield from decided(snapshot, ("hang", "stopped", "silent"), "error", _FIXES)
