"""NC822 row-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.fixes import leave_out
from ncclcheck.checks.matrix._matrix import SOURCE, not_judged, unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.shared_hosts import host_text
from ncclcheck.model.benchmarks.matrix import MatrixNode
from ncclcheck.model.finding import Evidence, Finding
from ncclcheck.model.snapshot import Snapshot


@check("NC822", "row-slow", "No node of the matrix is slow with all others, hangs or fails")
def row_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """No node is slow with all others, and all of them answer until the end.

    ## Why it matters
    A job is as fast as its slowest node, and one that hangs stops it.

    ## How to fix
    Leave the node out of the job. `ncclcheck isolate` gives the chance that a named node is sound.

    ## Source
    The measured paths of each node (ncclcheck/measure/matrix): a node is named in a direction if at least 80 % of them
    are slow in it. A node that does not answer is excluded, and the rounds go on without it. The check is unknown for a
    node that belongs to no leaf and is not named, and for one that finished no test.
    """
    matrix = measured(snapshot.matrix)
    for node in matrix.nodes if matrix is not None else ():
        about = _about(node, host_text(snapshot, node.host))
        yield Finding(
            "error",
            about,
            (node.host,),
            (
                Evidence(
                    (node.host,), "its paths", node.detail or about, "as fast as those of other nodes", SOURCE
                ),
            ),
            (leave_out(node.host),),
        )
    if matrix is not None:
        yield from not_judged(matrix)
    yield from unmeasured(snapshot)


def _about(node: MatrixNode, who_is_it: str) -> str:
    if node.outcome == "slow":
        directions = [
            word
            for word, is_slow in (("sends", node.sends_slowly), ("receives", node.receives_slowly))
            if is_slow
        ]
        return f"{who_is_it} {' and '.join(directions)} slowly, with all other nodes"
    what = "hangs" if node.outcome == "hang" else "fails"
    return f"{who_is_it} {what} in tests with other nodes" + (f": {node.detail}" if node.detail else "")
