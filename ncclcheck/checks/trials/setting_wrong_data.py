"""NC861 setting-wrong-data."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.trials._trials import SOURCE, arms_of, not_tried
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC861", "setting-wrong-data", "The collectives give correct results under every setting that was tried"
)
def setting_wrong_data(snapshot: Snapshot) -> Iterator[Answer]:
    """No setting of `bench --try` makes the collectives give wrong results.

    ## Why it matters
    Wrong data without an error corrupts a training run. NCCL_PROTO=LL128 does that where the hardware does not support
    it, as NCCL's manual says.

    ## How to fix
    Never set it on these nodes.

    ## Source
    The data depend on rank and position and are exact in any order of reduction; the timed buffers are verified. As-is
    was measured again right after that, and was correct.
    """
    for trial in arms_of(snapshot, "wrong data"):
        yield Finding(
            "error",
            f"{trial.name} gives wrong data: {trial.reason}: training would continue with it",
            trial.hosts,
            (Evidence(trial.hosts, trial.name, trial.reason, "no wrong element", SOURCE),),
            (Fix(f"never set {', '.join(trial.arm)} on these nodes"),),
        )
    yield from not_tried(snapshot)
