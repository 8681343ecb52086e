"""Runs one check over a snapshot, as the registry does."""

from __future__ import annotations

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.finding import CheckRun, Finding
from ncclcheck.model.snapshot import Snapshot


def run(slug: str, snapshot: Snapshot) -> CheckRun:
    """The outcome of the check of that slug."""
    return run_check(next(check for check in all_checks() if check.slug == slug), snapshot)


def finding(slug: str, snapshot: Snapshot) -> Finding:
    """The only finding of that check."""
    result = run(slug, snapshot)
    assert len(result.findings) == 1, (result.outcome, result.reason, result.findings)
    assert result.findings[0].slug == slug
    return result.findings[0]


def is_silent(slug: str, snapshot: Snapshot) -> bool:
    """True when the check passes without a word."""
    result = run(slug, snapshot)
    return result.outcome == "passed" and not result.reason
