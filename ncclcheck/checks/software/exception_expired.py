"""NC511 exception-expired."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot

_WORDS = {"ignore": "the exception of", "demote": "the demotion of", "require": "the requirement of"}


@check("NC511", "exception-expired", "No exception of the policy has expired", image=True)
def exception_expired(snapshot: Snapshot) -> Iterator[Answer]:
    """No `ignore`, `demote` or `require` of the policy (`--expect`) is past its `until` date.

    The date is that of the run in UTC; the exception still applies on the day of `until`.

    ## Why it matters
    An exception is temporary and easily forgotten. After its date the check counts again: a gate that passed
    yesterday may fail today, and this finding says why.

    ## How to fix
    Fix the problem and remove the exception, or set a new date and a valid reason.

    ## Source
    The policy, by file and line; the time at which the run began.
    """
    expected = snapshot.expected
    if not expected.rules:
        yield NotApplicable("no policy (--expect) makes an exception")
    for rule in expected.rules:
        if expected.is_over(rule):
            reason = f" ({rule.reason})" if rule.reason else ""
            counts = "no longer counts" if rule.kind == "require" else "counts again"
            yield Finding(
                "info",
                f"{_WORDS[rule.kind]} {rule.check}{reason} expired on {rule.until}: it {counts}",
                (),
                (Evidence((), f"until of {rule.kind}", rule.until, f"{expected.on} or later", rule.source),),
                (Fix(f"remove it from the policy, or set a new date ({rule.source})"),),
            )
