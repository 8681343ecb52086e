"""A short log as a test writes it, and what the causes make of it."""

from __future__ import annotations

from ncclcheck.checks.logs._outcome import Explained, explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.events import Log
from ncclcheck.model.snapshot import Snapshot


def read(text: str, **further: str) -> Log:
    """The log of a file with that text, and of further files by name."""
    collector = Collector()
    for name, part in {"job.log": text, **further}.items():
        collector.read(name, batches([part.lstrip("\n").encode()]))
    return collector.log()


def explain(text: str, **further: str) -> Explained:
    """What all causes together make of it; none of them may crash."""
    log = read(text, **further)
    runs = run_checks(Snapshot(nodes=(), log=log), Selection(), "log")
    assert [run.slug for run in runs if run.outcome == "crashed"] == []
    return explained(log, runs)


def assert_cause(text: str, slug: str, hosts: set[str] | None = None) -> None:
    """The first finding is an error of that cause, names those culprits, shows lines, and says what to do."""
    result = explain(text)
    assert (result.outcome, [finding.slug for finding in result.findings[:1]]) == ("named", [slug])
    first, *later = result.findings
    assert first.severity == "error"
    assert {finding.severity for finding in later} <= {"warning"}
    assert first.evidence
    assert all(":" in evidence.source for evidence in first.evidence)
    assert first.fixes
    if hosts is not None:
        assert set(first.hosts) == hosts
