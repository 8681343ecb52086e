"""NC812 node-intermittent."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import nodes_with, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC812", "node-intermittent", "No node is bad at times")
def node_intermittent(snapshot: Snapshot) -> Iterator[Answer]:
    """No node is slow in several tests and fast in others.

    ## Why it matters
    Such a node passes a short test and spoils a long job.

    ## How to fix
    Test it for longer (`--screen 4`), and look at its error counters (`ethtool -S`, `ip -s link`) while it is slow.

    ## Source
    Rounds of disjoint pairs (ncclcheck/measure/isolation): a suspect meets sound partners until the likelihood that
    it is sound is below one in a hundred for all suspects together, with the rate of disturbances of the same run.
    """
    yield from nodes_with(snapshot, "intermittent", "warning")
    yield from untested(snapshot)
