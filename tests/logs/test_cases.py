"""Logs of faults: the first finding names the cause, the culprit, lines and what to do.

A case is a file `cases/<cause>-<what>.log`. Its first line says what is expected, and is no part of the log:

    expect: CAUSE[, CAUSE]        one of these is named; `healthy` or `undetermined` where nothing is
    ; hosts: HOST, rank N         exactly these are named; `none` for nobody
    ; culprits: HOST, rank N      at least one of these is named, and at most as many wrong ones

The logs were written for this project from the message formats of the software.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from ncclcheck.checks.logs._outcome import Explained, explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.snapshot import Snapshot

CASES = sorted((Path(__file__).parent / "cases").glob("*.log"))


class Expected(Struct, frozen=True):
    """What the first line of a case says; None where it says nothing."""

    causes: list[str]
    hosts: set[str] | None = None
    culprits: set[str] | None = None


def case_of(path: Path) -> tuple[Expected, bytes]:
    """Split a case into what is expected and the log."""
    head, _, log = path.read_bytes().partition(b"\n")
    fields = dict(part.split(": ", 1) for part in head.decode().split("; "))
    assert set(fields) <= {"expect", "hosts", "culprits"}, f"{path.name}: {head.decode()}"
    named = {
        name: set(fields[name].split(", ")) - {"none"} for name in ("hosts", "culprits") if name in fields
    }
    return Expected(fields["expect"].split(", "), **named), log


def explain(name: str, text: bytes) -> Explained:
    """Explain the log as the command does; no cause may crash."""
    collector = Collector()
    collector.read(name, batches([text]))
    log = collector.log()
    runs = run_checks(Snapshot(nodes=(), log=log), Selection(), "log")
    assert [run.slug for run in runs if run.outcome == "crashed"] == []
    return explained(log, runs)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cause_and_culprit_are_named(path: Path) -> None:
    expected, text = case_of(path)
    result = explain(path.name, text)
    found = result.findings[0].slug if result.outcome == "named" else result.outcome
    assert found in expected.causes, result.findings[:2]
    if result.outcome == "healthy":
        assert [finding for finding in result.findings if finding.severity == "error"] == []
    if result.outcome == "named":
        first, *later = result.findings
        assert first.severity == "error"
        assert {finding.severity for finding in later} <= {"warning"}
        assert first.evidence
        assert all(":" in line.source for line in first.evidence)
        assert first.fixes
    if expected.hosts is not None:
        assert set(result.findings[0].hosts) == expected.hosts
    if expected.culprits is not None:
        right = set(result.findings[0].hosts) & expected.culprits
        assert right, result.findings[0].hosts
        assert len(result.findings[0].hosts) <= 2 * len(right)
