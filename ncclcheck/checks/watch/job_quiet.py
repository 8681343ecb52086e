"""NC852 job-quiet."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.watch._watched import decided
from ncclcheck.model.snapshot import Snapshot


@check("NC852", "job-quiet", "The job does not pause for long", subject="job")
def job_quiet(snapshot: Snapshot) -> Iterator[Answer]:
    """Something of the running job advances all the time.

    ## Why it matters
    A long pause that is not a hang (saving, compiling, loading data) costs the time of all GPUs. It is reported, and
    nothing is touched.

    ## How to fix
    Nothing, where the pause is expected: the patience is raised to five times the longest pause that the job
    recovered from. Otherwise look at the named line.

    ## Source
    `ncclcheck watch`: no rank moved bytes or woke up for `--patience`, and the stacks do not show that ranks wait for
    one that got lost: all are outside of collectives, one of them computes, or none could be read.
    """
    yield from decided(snapshot, ("quiet",), "info", ())
