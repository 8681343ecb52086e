"""NC860 setting-fails."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.trials._trials import SOURCE, arms_of, not_tried
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC860", "setting-fails", "The collectives run under every setting that was tried")
def setting_fails(snapshot: Snapshot) -> Iterator[Answer]:
    """No setting of `bench --try` makes the collectives hang, a rank die, or the backend refuse a call.

    ## Why it matters
    Such a setting ends a job, perhaps only at some size. It is dangerous on these nodes, whatever it gains elsewhere.

    ## How to fix
    Do not set it here. If the job needs it, measure with it alone: `NAME=VALUE ncclcheck bench --as-is`.

    ## Source
    The setting failed, and the environment as it is was measured again right after that and did not. Where no time was
    left for that, the finding says so; it was measured before.
    """
    for trial in arms_of(snapshot, "failed"):
        yield Finding(
            "error",
            f"{trial.name} fails here, and the environment without it does not: {trial.reason}",
            trial.hosts,
            (Evidence(trial.hosts, trial.name, trial.reason, "the collectives run", SOURCE),),
            (Fix(f"do not set {', '.join(trial.arm)} on these nodes"),),
        )
    yield from not_tried(snapshot)
