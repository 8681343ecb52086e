"""NC862 setting-trade."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.trials._trials import SOURCE, arms_of, not_tried
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC862", "setting-trade", "No setting that was tried gains at one size and loses at another")
def setting_trade(snapshot: Snapshot) -> Iterator[Answer]:
    """No setting of `bench --try` is faster at one size of the job and more than 2 % slower at another.

    ## Why it matters
    Such a setting looks like a gain in a benchmark of one size, and may cost a job that uses both sizes.

    ## How to fix
    Keep the environment as it is; or let a tuner choose by size, which NCCL asks for each collective.

    ## Source
    The gain is proven with 95 % for all settings and sizes together, the loss with 95 % by itself.
    """
    for trial in arms_of(snapshot, "refused"):
        yield Finding(
            "info",
            f"{trial.name} is not advised: {trial.reason}",
            (),
            (Evidence((), trial.name, trial.reason, "no size loses more than 2 %", SOURCE),),
            (Fix("keep the environment unchanged"),),
        )
    yield from not_tried(snapshot)
