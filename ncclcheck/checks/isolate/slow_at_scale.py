"""NC816 slow-at-scale."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import rings_of, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC816", "slow-at-scale", "The nodes are as fast together as in pairs")
def slow_at_scale(snapshot: Snapshot) -> Iterator[Answer]:
    """A ring of all nodes is as fast as rings of two, where no pair is slow.

    ## Why it matters
    All nodes and pairs are sound, so no node has to be left out, but a job of that size is slow: what the nodes
    share (a switch, an uplink, the paths that a fabric chooses) does not carry all of them at once.

    ## How to fix
    Run smaller jobs, or place the job on nodes of one switch. Look at the load of the uplinks and at how the
    fabric spreads connections over them (ECMP, adaptive routing).

    ## Source
    Rings of 2, 4, 8 ... nodes, one after the other (ncclcheck/measure/isolation/doubling.py): three rings of a size
    are slower than the smaller ones that are measured in between.
    """
    yield from rings_of(snapshot)
    yield from untested(snapshot)
