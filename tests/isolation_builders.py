"""Results of `isolate` for checks and reports."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.benchmarks.isolation import (
    NO_ANSWER,
    BadNode,
    Coverage,
    IsolationRound,
    PairIsolation,
    PairRate,
)
from ncclcheck.model.report import Report
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.session_report import report_of

SLOW = BadNode("node03", "slow", "send", 3, 0.0001, 0.8, 1.0)
HUNG = BadNode("node02", "hang", None, 1, 0.0, detail=NO_ANSWER)


def isolated(**changes: Any) -> PairIsolation:
    """A round of two pairs of four nodes, in which nobody is bad."""
    pairs = (
        PairRate("node01", "node02", 10.0, 10.0, "ok"),
        PairRate("node03", "node04", 8.0, 10.0, "slow"),
    )
    usual = PairIsolation(
        (IsolationRound(1, pairs),), (), (), (), None, Coverage(2, 6), 0.0, (), 10.0, 0.01, 7
    )
    return replace(usual, **changes)


def with_isolation(**changes: Any) -> Snapshot:
    """A healthy cluster of four nodes with that result."""
    return replace(cluster(4), isolation=isolated(**changes))


def isolate_report(**changes: Any) -> Report:
    """The report on it."""
    return report_of("isolate", with_isolation(**changes))
