"""Results of `matrix` for checks and reports."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import (
    FabricMatrix,
    MatrixCell,
    MatrixNode,
    MatrixPath,
    Oversubscription,
    RailRate,
    RailRates,
)
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.session_report import report_of

HOSTS = ("node01", "node02", "node03", "node04")
SLOW_PATH = MatrixPath("node01", "node02", 0.5, 10.0, 3)
SLOW_NODE = MatrixNode("node03", sends_slowly=True, receives_slowly=False)
HUNG_NODE = MatrixNode(
    "node04", sends_slowly=False, receives_slowly=False, outcome="hang", detail="no answer"
)
LEAVES = (HOSTS[:2], HOSTS[2:])
FOUR_TO_ONE = Oversubscription(10.0, 2.5, 4.0, 3.9, 4.1, 5)


def fabric(**changes: Any) -> FabricMatrix:
    """A flat network of four nodes."""
    cells = tuple(
        MatrixCell(source, target, 10.0, 1) for source in HOSTS for target in HOSTS if source != target
    )
    flat = Oversubscription(10.0, 10.0, 1.0, 0.98, 1.02, 5)
    leaves = changes.get("leaves", (HOSTS,))
    order = tuple(host for leaf in leaves for host in leaf)
    found = FabricMatrix(
        10.0, 0.01, leaves, len(leaves) == 1, (), 0.0, flat, order, (), (), cells, 11, is_finished=True
    )
    return replace(found, **changes)


def two_leaves() -> FabricMatrix:
    """Two leaves of two nodes, 4:1."""
    cells = tuple(
        MatrixCell(source, target, 10.0 if (source in HOSTS[:2]) == (target in HOSTS[:2]) else 2.5, 1)
        for source in HOSTS
        for target in HOSTS
        if source != target
    )
    return fabric(leaves=LEAVES, oversubscription=FOUR_TO_ONE, cells=cells, crossing_slow=1.0)


def with_matrix(**changes: Any) -> Snapshot:
    """A healthy cluster of four nodes with that result."""
    return replace(cluster(4), matrix=fabric(**changes))


def matrix_report(found: FabricMatrix) -> Report:
    """The report on it."""
    return report_of("matrix", replace(cluster(4), matrix=found))


def with_rails(slow: tuple[str, ...] = (), **changes: Any) -> Snapshot:
    """That cluster with two rails, of which these hosts are slow on the second."""
    rails = RailRates((RailRate(0, 10.0, ()), RailRate(1, 10.0, slow)), 9.5)
    return with_matrix(rails=replace(rails, **changes))


def many_hosts(nodes: int, leaf: int, partners: int) -> FabricMatrix:
    """So many nodes in leaves of that size at 4:1, each measured with so many others."""
    hosts = [f"node{number:05}" for number in range(nodes)]
    cells = tuple(
        MatrixCell(
            hosts[source],
            hosts[target],
            round(
                (10.0 if source // leaf == target // leaf else 2.5) * (1 + (source * 7 + step) % 50 / 1e4), 4
            ),
            1 + step % 2,
            round(50 + (source * 13 + step * 7) % 997 / 10, 1),
        )
        for source in range(nodes)
        for step in range(1, partners + 1)
        if (target := (source + step * step) % nodes) != source
    )
    leaves = tuple(tuple(hosts[number : number + leaf]) for number in range(0, nodes, leaf))
    return fabric(leaves=leaves, oversubscription=FOUR_TO_ONE, cells=cells, crossing_slow=1.0)
