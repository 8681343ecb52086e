"""The setting that won the trials of `bench --try`, as advice: measured, confirmed, and with its class."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.model.benchmarks.trials import SizeEffect, Trial
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Advice, Setting
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_size
from ncclcheck.nccl.variables.trying import class_of


def with_trials(advice: Advice, snapshot: Snapshot) -> Advice:
    """Return the advice with the setting that won. It replaces what is advised for the same variable on all nodes."""
    bench = snapshot.bench
    if isinstance(bench, Missing) or bench.trials is None:
        return advice
    winner = next((trial for trial in bench.trials if trial.outcome == "advised"), None)
    if winner is None:
        return advice
    why = f"tried against the environment as it is, {winner.reason}"
    evidence = (
        f"{_ratios(winner.per_size)}; measured again: {_ratios(winner.confirmed)} "
        f"({bench.world_size} ranks on {bench.nodes} nodes, {bench.backend}, the collectives alone)"
    )
    settings = [Setting(name, value, (), why, "measured", evidence) for name, value in winner.arm.items()]
    kept = [setting for setting in advice.env if setting.name not in winner.arm]
    return replace(advice, env=(*kept, *settings), notes=(*advice.notes, *_class_notes(winner)))


def _ratios(effects: Sequence[SizeEffect]) -> str:
    return ", ".join(
        f"{effect.op} {format_size(effect.size_bytes)} {effect.ratio:.3f} times as fast"
        + (f" ({effect.low:.3f} to {effect.high:.3f})" if effect.low and effect.high else "")
        for effect in effects
        if effect.ratio is not None
    )


def _class_notes(winner: Trial) -> tuple[str, ...]:
    """Return the warning of NCCL's manual, where it does not want such a variable to be kept."""
    debugging = [name for name in winner.arm if class_of([name]) == "debugging"]
    if not debugging:
        return ()
    return (
        f"NCCL's manual lists {', '.join(debugging)} under Debugging: not to be retained in scripts, or only as a "
        "workaround. Measure again after each change of NCCL, nodes or sizes, and take it out when it gains nothing",
    )
