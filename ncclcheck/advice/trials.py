"""The trials of `bench --try`: the setting that won, as advice with its class, and what is not tried on these nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.trials import SizeEffect, Trial, TryRequest
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Advice, Setting
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.model.units import format_size
from ncclcheck.nccl.variables.ll128 import ll128_refusal
from ncclcheck.nccl.variables.trying import class_of, forces_ll128


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
    untouched = [setting for setting in advice.env if setting.name not in winner.arm]
    return replace(advice, env=(*untouched, *settings), notes=(*advice.notes, *_class_notes(winner)))


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


def may_be_tried(tries: TryRequest | None, network: BenchNetwork, snapshot: Snapshot) -> Missing | None:
    """Return why one of these settings is not tried on this network; None where all may be."""
    for arm in () if tries is None else tries.arms:
        if _is_as_is(arm, network, snapshot):
            words = ",".join(f"{name}={value}" for name, value in arm.items())
            return Missing(
                "unsupported", f"{words} is not tried: it is what runs as it is on every node: leave it out"
            )
        if network.backend == "nccl" and forces_ll128(arm):
            nodes = [(node.host, node.facts) for node in snapshot.nodes]
            if why := ll128_refusal(nodes, arm["NCCL_PROTO"]):
                return Missing("unsupported", why)
    return None


def _is_as_is(arm: Mapping[str, str], network: BenchNetwork, snapshot: Snapshot) -> bool:
    """Return whether every node is known to run with these settings anyway; defaults of NCCL are not looked at."""
    for node in snapshot.nodes:
        job = node.facts.environment
        known = {**({} if isinstance(job, Missing) else job), **network.environment_of.get(node.host, {})}
        if any(known.get(name) != value for name, value in arm.items()):
            return False
    return bool(snapshot.nodes)
