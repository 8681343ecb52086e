"""Logs of faults, written for this project from the message formats of the software: cause, and whom it points at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.checks.logs._outcome import Explained, explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.snapshot import Snapshot

CASES = Path(__file__).parent / "cases"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())


def explain(name: str) -> Explained:
    collector = Collector()
    collector.read(name, batches([(CASES / name).read_bytes()]))
    log = collector.log()
    return explained(log, run_checks(Snapshot(nodes=(), log=log), Selection(), "log"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_cause_and_culprit_are_named(name: str) -> None:
    result, expected = explain(name), EXPECTED[name]
    found = result.findings[0].slug if result.outcome == "named" else result.outcome
    assert found in expected["causes"], result.findings[:2]
    if result.outcome == "healthy":
        assert [finding for finding in result.findings if finding.severity == "error"] == []
    if expected["culprits"]:
        right = set(result.findings[0].hosts) & set(expected["culprits"])
        assert right, result.findings[0].hosts
        assert len(result.findings[0].hosts) <= 2 * len(right)


def test_every_log_is_expected() -> None:
    assert {path.name for path in CASES.glob("*.log")} == set(EXPECTED)
