"""NC826 leaf-uplink-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.matrix._matrix import SOURCE, unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.matrix.uplinks import LEAST_LEAVES
from ncclcheck.model.benchmarks.matrix import FabricMatrix, LeafUplink, leaf_name
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

_DIRECTIONS = {"send": "out of it", "receive": "into it", "both": "in both directions"}


@check("NC826", "leaf-uplink-slow", "The uplink of no leaf is slower than those of the others")
def leaf_uplink_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """The nodes of each leaf reach as much across leaves as those of the others, while all nodes send.

    ## Why it matters
    A job on this leaf and others is as slow as its uplink. One of several cables that is down, or runs at a lower
    speed, does not show between single nodes.

    ## How to fix
    Look at the ports of the leaf's switch toward the spine: one that is down, slow, or has errors. Until then place
    jobs within the leaf, or leave it out.

    ## Source
    The rounds in which all nodes send across leaves (ncclcheck/measure/matrix/uplinks.py): in each of them the nodes of
    the leaf reach at most 75 % of what nodes of two other leaves reach, and the leaf as a whole moves at most 75 % of
    what the others do. Of two leaves nobody can tell whose uplink is slow.
    """
    matrix = measured(snapshot.matrix)
    yield from unmeasured(snapshot)
    if matrix is None or not matrix.is_finished:
        return
    if not matrix.leaves:
        yield NotKnown("no pair of nodes that answer finished a test")
    elif len(matrix.leaves) < LEAST_LEAVES:
        yield NotApplicable("the network is flat" if matrix.flat else "it takes three leaves to tell")
    else:
        yield from _compared(matrix)


def _compared(matrix: FabricMatrix) -> Iterator[Answer]:
    """Yield each slow uplink, and each leaf that could not be compared."""
    for uplink in matrix.uplinks:
        if uplink.slow is not None:
            yield _finding(uplink, _DIRECTIONS[uplink.slow], matrix)
    compared = {uplink.leaf for uplink in matrix.uplinks}
    for number, hosts in enumerate(matrix.leaves):
        if number not in compared:
            yield NotKnown(
                f"{leaf_name(number, len(matrix.leaves))} could not be compared with others", hosts
            )


def _finding(uplink: LeafUplink, direction: str, matrix: FabricMatrix) -> Finding:
    name, hosts = leaf_name(uplink.leaf, len(matrix.leaves)), matrix.leaves[uplink.leaf]
    return Finding(
        "error",
        f"the uplink of {name} is slow {direction}: its nodes reach {uplink.across_gbit_s:.3g} "
        f"Gbit/s each across leaves, where {uplink.usual_gbit_s:.3g} Gbit/s is usual",
        hosts,
        (
            Evidence(
                hosts,
                f"{name} across leaves, all nodes at once",
                f"{uplink.across_gbit_s:.3g} Gbit/s each",
                f"{uplink.usual_gbit_s:.3g} Gbit/s between the other leaves",
                SOURCE,
            ),
        ),
        (Fix(f"look at the ports toward the spine of the switch that {hosts[0]} is connected to"),),
    )
