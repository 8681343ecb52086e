"""What the checks of `bench --try` share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.measured import bench_of
from ncclcheck.model.benchmarks.trials import Outcome, Trial
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

SOURCE = "ncclcheck bench --try: fresh processes in each round, as-is in every round"


def arms_of(snapshot: Snapshot, *outcomes: Outcome) -> Sequence[Trial]:
    """Return the arms with one of these outcomes."""
    bench = bench_of(snapshot)
    trials = bench.trials if bench is not None else None
    return [trial for trial in trials or () if trial.role == "arm" and trial.outcome in outcomes]


def not_tried(snapshot: Snapshot) -> Iterator[NotKnown | NotApplicable]:
    """Yield why there is nothing to judge."""
    bench = bench_of(snapshot)
    if bench is None or bench.trials is None or bench.race is None:
        yield NotApplicable("no settings were tried (bench --try)")
    elif not any(trial.rounds for trial in bench.trials if trial.role == "arm") and not arms_of(
        snapshot, "failed", "wrong data"
    ):
        yield NotKnown(f"no setting was measured: {bench.race.words}")
