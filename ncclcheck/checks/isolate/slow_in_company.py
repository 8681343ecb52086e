"""NC815 slow-in-company."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import groups_of, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC815", "slow-in-company", "No group of nodes is slow only when several of its nodes send at once")
def slow_in_company(snapshot: Snapshot) -> Iterator[Answer]:
    """A group of nodes is fast one pair at a time, and slow when several of its nodes send at once.

    ## Why it matters
    The path that they share to the other nodes is oversubscribed: each node of a job that spans it gets only a part of
    its adapter's bandwidth.

    ## How to fix
    Place jobs within such a group, or order the ranks so that few pairs cross it.

    ## Source
    Rounds of disjoint pairs (ncclcheck/measure/isolation): a suspect meets sound partners until the likelihood that
    it is sound is below one in a hundred for all suspects together, with the rate of disturbances of the same run.
    """
    yield from groups_of(snapshot, "slow_together")
    yield from untested(snapshot)
