"""`--from`: the report of a saved run, without cluster, GPU or torch."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.saved import Saved
from ncclcheck.run.conclude import judge
from ncclcheck.run.options import Ended, RunOptions


def replay(saved: Saved, options: RunOptions) -> Ended:
    """The report that the saved run gives under these options; under the run's own options, the identical one."""
    asked = _as_asked(saved, options)
    return Ended(judge(asked, options), asked, prints=True)


def _as_asked(saved: Saved, options: RunOptions) -> Saved:
    """The saved run with what is demanded of it now. A preflight replayed as a benchmark is one that did not run."""
    snapshot = saved.snapshot
    if options.gpus_per_node is not None:
        snapshot = replace(snapshot, expected_gpus_per_node=options.gpus_per_node)
    if options.flags.nnodes is not None:  # of the policy: on the command line it would place a run
        snapshot = replace(snapshot, expected_nodes=options.flags.nnodes)
    command = options.command if saved.command == "preflight" else saved.command
    return replace(saved, command=command, snapshot=snapshot)
