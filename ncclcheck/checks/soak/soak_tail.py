"""NC841 soak-tail."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import soak_not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.soak._soak import events_of, evidence, span_words
from ncclcheck.model.finding import Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC841", "soak-tail", "No iteration took far longer than the others")
def soak_tail(snapshot: Snapshot) -> Iterator[Answer]:
    """No iteration of the soak took more than ten times the usual one.

    ## Why it matters
    All ranks wait for the last one in every step. A node that stands still for a fifth of a second every half minute
    costs all others that time, and an average hides it.

    ## How to fix
    On the node that is named, look for what stops its processes: swapping, a cron job, a monitoring agent, a quota of
    its control group, or a host that gives it no CPU (steal). If no rank was late, packets were lost: look at the
    counters of the links.

    ## Source
    The time of each iteration, and in it how long each rank was inside the call (the last one was inside for the
    shortest time), and for how long its process did not run (ncclcheck/measure/soak/tails.py). One such iteration is a
    warning, several are an error.
    """
    for event in events_of(snapshot, "tail"):
        is_one = event.summary.startswith("1 ")
        yield Finding(
            "warning" if is_one else "error",
            f"{event.summary}, {span_words(event)}",
            event.hosts,
            evidence(event),
            (
                Fix(
                    "find out what stops the processes there, or what loses packets",
                    ("vmstat 1", "cat /sys/fs/cgroup/cpu.stat", "nstat -a | grep -i retrans"),
                ),
            ),
        )
    yield from soak_not_measured(snapshot)
