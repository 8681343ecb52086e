"""NC814 group-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import groups_of, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC814", "group-slow", "No group of nodes sits behind a slow path")
def group_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """No group of nodes is sound inside and slow toward all others, even with one pair at a time.

    ## Why it matters
    The nodes are sound; what they share is not: an uplink, a switch, a rack.

    ## How to fix
    Look at the uplink that these nodes share: its speed, errors and failed members.

    ## Source
    Rounds of disjoint pairs (ncclcheck/measure/isolation): a suspect meets sound partners until the likelihood that
    it is sound is below one in a hundred for all suspects together, with the rate of disturbances of the same run.
    """
    yield from groups_of(snapshot, "slow_uplink")
    yield from untested(snapshot)
