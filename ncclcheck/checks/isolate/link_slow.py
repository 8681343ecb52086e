"""NC813 link-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.isolate._isolation import links_of, untested
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.snapshot import Snapshot


@check("NC813", "link-slow", "No path between two good nodes is slow")
def link_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """No pair of nodes is slow or blocked whose two nodes are sound with others.

    ## Why it matters
    A ring or tree that uses this path is as slow as the path.

    ## How to fix
    Compare the routes of the two nodes (`tracepath`), their cables and switch ports, and the firewall rules for each
    other. Few pairs are tested: another bad path may exist.

    ## Source
    Rounds of disjoint pairs (ncclcheck/measure/isolation): a suspect meets sound partners until the likelihood that
    it is sound is below one in a hundred for all suspects together, with the rate of disturbances of the same run.
    """
    yield from links_of(snapshot)
    yield from untested(snapshot)
