"""NC511 exception-expired."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot

_WORDS = {"ignore": "the exception of", "demote": "the demotion of", "require": "the requirement of"}


@check("NC511", "exception-expired", "No exception of the policy is over", image=True)
def exception_expired(snapshot: Snapshot) -> Iterator[Answer]:
    """Every `ignore`, `demote` and `require` of the policy (`--expect`) whose `until` is past is named.

    The day is that of the run, in UTC; the day of `until` itself still counts.

    ## Why it matters
    An exception is made for a while, and forgotten. When it is over the check counts again, as if the exception were
    not there: a gate that was green yesterday may be red today, and this says why.

    ## How to fix
    Mend what the exception was for and remove it, or give it a new day and a reason that still holds.

    ## Source
    The policy, by file and line; the time at which the run began.
    """
    expected = snapshot.expected
    if not expected.rules:
        yield NotApplicable("no policy (--expect) makes an exception")
    for rule in expected.rules:
        if expected.is_over(rule):
            reason = f" ({rule.reason})" if rule.reason else ""
            counts = "does not count any more" if rule.kind == "require" else "counts again"
            yield Finding(
                "info",
                f"{_WORDS[rule.kind]} {rule.check}{reason} ended on {rule.until}: it {counts}",
                (),
                (Evidence((), f"until of {rule.kind}", rule.until, f"{expected.on} or later", rule.source),),
                (Fix(f"remove it from the policy, or give it a new day ({rule.source})"),),
            )
