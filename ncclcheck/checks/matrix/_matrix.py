"""What the checks of `matrix` share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ncclcheck.checks.measured import why_missing
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

ONE_RAIL = "the nodes were measured over one rail"
SOURCE = "ncclcheck matrix: all nodes in pairs, both directions"


def unmeasured(snapshot: Snapshot) -> Iterator[NotKnown | NotApplicable]:
    """Yield why there is nothing to judge."""
    matrix = snapshot.matrix
    if isinstance(matrix, Missing):
        yield why_missing(matrix, "the matrix of the nodes")
    elif not matrix.is_finished:
        yield NotKnown("the matrix of the nodes was not finished")


def not_judged(matrix: FabricMatrix) -> Iterator[NotKnown]:
    """Yield each host that belongs to no leaf, or finished no test, and is not named as slow or lost."""
    named = {node.host for node in matrix.nodes}
    tested = {
        end for cell in matrix.cells if cell.gbit_s is not None for end in (cell.from_host, cell.to_host)
    }
    for host in _answering(matrix):
        if host in named:
            continue
        if host not in tested:
            yield NotKnown(f"{host} finished no test", (host,))
        elif host in matrix.apart:
            yield NotKnown(
                f"{host} belongs to no leaf, and neither all it sends nor all it receives is slow", (host,)
            )


def unmeasured_pairs(matrix: FabricMatrix) -> Iterator[NotKnown]:
    """Yield how many pairs of the hosts that answer were measured, where some were not.

    A pair was measured if both directions have a rate, or one that has none is named, or one of its nodes is.
    """
    named = {node.host for node in matrix.nodes}
    paths = {(path.from_host, path.to_host) for path in matrix.paths}
    known = {
        (cell.from_host, cell.to_host)
        for cell in matrix.cells
        if cell.gbit_s is not None
        or (cell.from_host, cell.to_host) in paths
        or cell.from_host in named
        or cell.to_host in named
    }
    hosts = _answering(matrix)
    pairs = len(hosts) * (len(hosts) - 1) // 2
    measured = sum((there, here) in known for here, there in combinations(hosts, 2) if (here, there) in known)
    if measured < pairs or not pairs:
        yield NotKnown(f"{measured} of {pairs} pairs were measured (all of them with --full)")


def open_paths(matrix: FabricMatrix) -> Iterator[NotKnown]:
    """Yield each path that was slow at first and could not be decided."""
    for path in matrix.open_paths:
        yield NotKnown(
            f"the path from {path.from_host} to {path.to_host} was slow in {path.slow} of {path.tests} tests, which "
            "does not decide",
            (path.from_host, path.to_host),
        )


def _answering(matrix: FabricMatrix) -> tuple[str, ...]:
    """Return the hosts that were not lost."""
    lost = {node.host for node in matrix.nodes if node.outcome != "slow"}
    hosts = (*(host for leaf in matrix.leaves for host in leaf), *matrix.apart)
    return tuple(host for host in hosts if host not in lost)
