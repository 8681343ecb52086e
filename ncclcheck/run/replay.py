"""`--from`: the report of a saved run, without cluster, GPU or torch."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.bench_demands import demands_now
from ncclcheck.model.saved import Saved
from ncclcheck.run.judge import judge, start_clock, with_policy
from ncclcheck.run.options import RunOptions, RunResult


def replay(saved: Saved, options: RunOptions) -> RunResult:
    """Return the report of the saved run under these options; under the run's own options, the identical one."""
    asked = _as_asked(saved, options)
    return RunResult(judge(asked, options), asked, prints=True)


def _as_asked(saved: Saved, options: RunOptions) -> Saved:
    """Return the saved run with what is demanded now. A preflight replayed as a benchmark is one that did not run."""
    snapshot = saved.snapshot
    if options.gpus_per_node is not None:
        snapshot = replace(snapshot, expected_gpus_per_node=options.gpus_per_node)
    if options.flags.nnodes is not None:  # of the policy: on the command line it would place a run
        snapshot = replace(snapshot, expected_nodes=options.flags.nnodes)
    snapshot = replace(snapshot, bench_demands=demands_now(snapshot.bench_demands, options.demands))
    dated = saved.created[:1].isdigit()  # facts carry no date: they are judged as of now
    snapshot = with_policy(snapshot, options, saved.created if dated else start_clock().created)
    command = options.command if saved.command == "preflight" else saved.command
    return replace(saved, command=command, snapshot=snapshot)
