"""The winner of `bench --try` as a file for NCCL's example tuner, which RCCL and NCCLX read too.

Source: plugins/tuner/example/plugin.c and README.md of NVIDIA/nccl 2.30.7: eight fields and more, the first match wins,
unknown words count as allreduce, ring or simple, and lines are read in pieces of 255 characters.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.benchmarks.trials import CallChoice, SizeEffect, Trial
from ncclcheck.model.report import BenchReport, Report
from ncclcheck.report.text.plain import plain

COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
ALGORITHMS = frozenset({"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"})
NCCL_PROTOCOLS = frozenset({"ll", "ll128", "simple"})
_TRAP = (
    "NVIDIA's example plug-in (up to 2.30.7) sets one channel before it looks for a row, so every call that no row",
    "here matches runs on ONE channel, however large: load it only where the job makes these calls alone, or set",
    "*nChannels = 0 at the top of pluginGetCollInfo, as AMD's copy does. Rows name their channels, and never -1.",
)


def to_tuner_csv(report: Report) -> str:
    """Return a row per size at which the winner is faster; without rows only comments that say why."""
    bench = report.bench
    lines = [
        f"# {text}"
        for text in (*_TRAP, "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks")
    ]
    if bench is None or bench.trials is None:
        return "# no rows: nothing was tried (bench --try)\n"
    winner = next((trial for trial in bench.trials if trial.outcome == "advised"), None)
    if winner is None:
        return "\n".join([*lines, "# no rows: no setting that was tried is advised"]) + "\n"
    if bench.backend != "nccl":
        return (
            "\n".join([*lines, f"# no rows: {bench.backend} was measured, and the file is for NCCL"]) + "\n"
        )
    rows = [row for effect in winner.per_size for row in _row(bench, winner, effect)]
    return "\n".join([*lines, *rows]) + "\n"


def _row(bench: BenchReport, winner: Trial, effect: SizeEffect) -> Iterator[str]:
    """Yield the row of a size, or the comment that says why it has none. It covers exactly the measured size."""
    what = f"{effect.op} of {effect.size_bytes} bytes"
    if effect.effect != "better":
        yield f"# {what}: no row, the setting is not faster there"
        return
    name, choice = COLLECTIVES.get(effect.op), _choice(winner, effect)
    if name is None:
        yield f"# {what}: no row, the plug-in knows no such collective"
    elif choice is None or not choice.channels:
        yield f"# {what}: no row, NCCL's log does not say with how many channels it ran (2.24.3 and newer do)"
    elif choice.algorithm.lower() not in ALGORITHMS or choice.protocol.lower() not in NCCL_PROTOCOLS:
        words = f"{plain(choice.algorithm[:20])}, {plain(choice.protocol[:20])}"
        yield f"# {what}: no row, the plug-in does not know {words}"
    else:
        yield (
            f"{name},{effect.size_bytes},{effect.size_bytes},{choice.algorithm.lower()},{choice.protocol.lower()},"
            f"{choice.channels},{bench.nodes},{bench.world_size}"
        )


def _choice(winner: Trial, effect: SizeEffect) -> CallChoice | None:
    """Return what NCCL's log says of that call; None where it says nothing, or more than one thing."""
    found = [
        choice
        for choice in winner.choices
        if choice.op == effect.op and choice.size_bytes == effect.size_bytes
    ]
    return found[0] if len(found) == 1 else None
