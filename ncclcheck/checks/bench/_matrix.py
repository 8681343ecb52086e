"""What the checks of `matrix` share."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

SOURCE = "ncclcheck matrix: all nodes in pairs, both directions"


def matrix_of(snapshot: Snapshot) -> FabricMatrix | None:
    """Return the result of `matrix`, where there is one."""
    return None if isinstance(snapshot.matrix, Missing) else snapshot.matrix


def unmeasured(snapshot: Snapshot) -> Iterator[NotKnown | NotApplicable]:
    """Yield why there is nothing to judge."""
    matrix = snapshot.matrix
    if isinstance(matrix, Missing):
        absent = matrix.missing == "absent"
        yield NotApplicable(matrix.detail) if absent else NotKnown(f"the matrix of the nodes: {matrix}")
    elif not matrix.is_finished:
        yield NotKnown("the matrix of the nodes was not finished")
