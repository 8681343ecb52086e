"""`ncclcheck watch`: start a job, stay beside it, and name who keeps it from going on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

from ncclcheck import timeouts
from ncclcheck.cli import options
from ncclcheck.cli.usage import PrefixCommand
from ncclcheck.cli.values import FileName, Seconds, WholeNumber
from ncclcheck.model.errors import UsageError

# What only a job that watch starts has a use for: its environment, and the watchers of other nodes.
_OF_A_START = {
    "as_is",
    "isolate",
    "nnodes",
    "node_rank",
    "master_addr",
    "master_port",
    "nproc_per_node",
    "key_file",
    "meet_port",
}


@click.command(cls=PrefixCommand)
@click.option(
    "--dir",
    "dir_",
    type=FileName(),
    metavar="DIR",
    help="Folder for evidence; each node makes one of its own in it.  [in $TMPDIR]",
)
@click.option(
    "--patience",
    type=Seconds(),
    default=timeouts.WATCH_PATIENCE_S,
    help=f"Nothing advances for so long before the stacks are read.  [{timeouts.WATCH_PATIENCE_S:g}]",
)
@click.option(
    "--on-hang",
    type=click.Choice(["report", "dump", "stop"], case_sensitive=False),
    default="report",
    help="dump: also torch's flight recorder; stop: then end the job, exit 4.  [report]",
)
@click.option(
    "--preflight", is_flag=True, help="Check first (ncclcheck preflight); start COMMAND if all checks pass."
)
@click.option(
    "--isolate", is_flag=True, help="After a hang or failure, test pairs of nodes (ncclcheck isolate)."
)
@click.option("--as-is", is_flag=True, help="Add nothing to the environment of the job, nor to its streams.")
@click.option(
    "--attach",
    metavar="PID",
    type=WholeNumber(2, 2**31),
    help="Watch the job of this process, which runs already, and start nothing.",
)
@click.option("--status", is_flag=True, help="Print how the job is whose watchers have this --dir, and end.")
@options.launch_place
@options.key_file
@click.option(
    "--meet-port",
    type=WholeNumber(1, 65535),
    help="TCP port on node 0 at which the watchers meet.  [master port - 10007]",
)
@options.outputs
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but what was found.")
@click.pass_context
def watch(context: click.Context, /, **given: Any) -> None:
    """Run COMMAND, and name the rank that hangs or fails.

    With its source line, and who waits for it.

    The job gets the words, folder, environment, streams and signals that it would have without, and its exit code is
    that of watch. Ranks are the descendants of COMMAND with a LOCAL_RANK (torchrun and others), or COMMAND itself. A
    job hangs when nothing advanced for --patience, the Python stacks of its ranks do not change, and one of them is
    inside a collective. Stacks need py-spy: pip install 'ncclcheck[watch]'.

    Start it on every node, as the job: the watchers meet, and node 0 decides over all ranks. SIGUSR1 to watch: read the
    stacks now.

    Exit codes: those of the job; 4 after --on-hang stop. With --attach: 0, or 1 with a finding. With --status also 3:
    a watcher does not look any more.
    """
    from ncclcheck.cli.outputs import refuse_bad_outputs
    from ncclcheck.cli.watching.status import show_status
    from ncclcheck.cli.watching.watching import attach, run_watched

    if given["status"]:
        if given["dir_"] is None or given["command"] or given["attach"]:
            raise UsageError("--status reads what watchers leave in their folder: give --dir DIR, and no job")
        _refuse_idle(context, "--status", {*given} - {"status", "dir_"})
        context.exit(show_status(given["dir_"]))
    if (given["command"] is None) == (given["attach"] is None):
        raise UsageError("watch: which job? give its command after '--', or --attach PID of one that runs")
    if given["preflight"] and given["attach"] is not None:
        raise UsageError(
            "--preflight checks before a job starts, and --attach watches one that runs: leave one out"
        )
    if given["attach"] is not None:
        _refuse_idle(context, "--attach", _OF_A_START)
    refuse_bad_outputs(given)
    context.exit(run_watched(given) if given["command"] else attach(given))


def _refuse_idle(context: click.Context, mode: str, idle: Collection[str]) -> None:
    """Raise UsageError where an option was given that has no effect in this mode."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in idle and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[-1]} has no effect with {mode}: leave one out")
