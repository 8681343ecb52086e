"""Results of `isolate` for checks and reports."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.model.benchmarks.isolation import (
    BadNode,
    Coverage,
    IsolationRound,
    PairIsolation,
    PairRate,
)
from ncclcheck.model.report import Advice, Report
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.build import build_report
from tests.builders import cluster

SLOW = BadNode("node03", "slow", "send", 3, 0.0001, 0.8, 1.0)
HUNG = BadNode("node02", "hang", None, 1, 0.0, detail="it does not answer any more")


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
    snapshot = with_isolation(**changes)
    return build_report(
        snapshot,
        run_checks(snapshot, Selection()),
        Advice(),
        command="isolate",
        created="2026-11-22T00:00:00+00:00",
        elapsed_s=9.0,
        fail_on="error",
        require=(),
        interrupted=False,
    )
