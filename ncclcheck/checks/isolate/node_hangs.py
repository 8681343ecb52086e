"""NC811 node-hangs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import nodes_with, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC811", "node-hangs", "No node hangs or dies in a test")
def node_hangs(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node answers, and its transfers finish.

    ## Why it matters
    One node that hangs or dies stops the whole job, which then waits for its timeout.

    ## How to fix
    Exclude the node from the job, and look at its kernel log (`dmesg -T`), its load, and what stopped the process.

    ## Source
    Rounds of disjoint pairs (ncclcheck/measure/isolation): a suspect meets sound partners until the likelihood that
    it is sound is below one in a hundred for all suspects together, with the rate of disturbances of the same run.
    """
    for verdict in ("hang", "died", "unreachable"):
        yield from nodes_with(snapshot, verdict)
    yield from untested(snapshot)
