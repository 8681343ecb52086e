"""NC810 node-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import nodes_with, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC810", "node-slow", "No node is slower than the others")
def node_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node sends and receives as fast as the others, with several partners.

    ## Why it matters
    A collective is as slow as its slowest node, and its times do not show which one that is.

    ## How to fix
    Exclude the node from the job, and compare its card, cable, driver and load with those of a sound one (`ethtool`,
    `ip -s link`, `nvidia-smi`). Only one direction slow points to a cable, a queue or a shaper.

    ## Source
    Rounds of disjoint pairs (ncclcheck/measure/isolation): a suspect meets sound partners until the likelihood that
    it is sound is below one in a hundred for all suspects together, with the rate of disturbances of the same run.
    """
    yield from nodes_with(snapshot, "slow")
    yield from untested(snapshot)
