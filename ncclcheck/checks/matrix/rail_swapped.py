"""NC825 rail-swapped."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.matrix._matrix import ONE_RAIL, SOURCE, unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.benchmarks.matrix import SwappedRail
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot


@check("NC825", "rail-swapped", "No GPU of the matrix is on the rail of another one")
def rail_swapped(snapshot: Snapshot) -> Iterator[Answer]:
    """GPU i of each node is on the same rail as GPU i of the other nodes.

    ## Why it matters
    NCCL sends from GPU i to GPU i of the next node. A rail whose cable is in the port of another one crosses the spine,
    or a switch of another rail.

    ## How to fix
    Change the two cables, or the order of the cards.

    ## Source
    GPU i of the node is slow with GPU i of the other nodes and fast with their GPU j, in rounds in which GPU i meets
    each other one (ncclcheck/measure/matrix/rail_table.py). It does not apply where the nodes have one GPU or the
    processes see one each.
    """
    matrix = measured(snapshot.matrix)
    yield from unmeasured(snapshot)
    if matrix is None:
        return
    if matrix.rails is None:
        yield NotApplicable(ONE_RAIL)
        return
    for swap in matrix.rails.swapped:
        yield _finding(swap)


def _finding(swap: SwappedRail) -> Finding:
    return Finding(
        "warning",
        f"GPU {swap.gpu} of {swap.host} is on rail {swap.rail}: it is slow with GPU {swap.gpu} of the other nodes, and "
        f"fast with their GPU {swap.rail}",
        (swap.host,),
        (Evidence((swap.host,), f"rail of GPU {swap.gpu}", f"rail {swap.rail}", f"rail {swap.gpu}", SOURCE),),
        (
            Fix(
                f"compare the cables of the cards of GPU {swap.gpu} and GPU {swap.rail} on {swap.host}",
                ("nvidia-smi topo -m",),
            ),
        ),
    )
