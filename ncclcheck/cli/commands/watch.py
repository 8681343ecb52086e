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
    help="Folder for evidence; each node creates its own folder in it.  [in $TMPDIR]",
)
@click.option(
    "--patience",
    type=Seconds(),
    default=timeouts.WATCH_PATIENCE_S,
    help=f"Seconds without progress before stacks are read.  [{timeouts.WATCH_PATIENCE_S:g}]",
)
@click.option(
    "--on-hang",
    type=click.Choice(["report", "dump", "stop"], case_sensitive=False),
    default="report",
    help="On a hang: report it; dump also torch's flight recorder; or stop the job with exit code 4.  [report]",
)
@click.option(
    "--preflight",
    is_flag=True,
    help="Run 'ncclcheck preflight' first, and start COMMAND only if all checks pass.",
)
@click.option(
    "--isolate",
    is_flag=True,
    help="After a hang or failure, test pairs of nodes as 'ncclcheck isolate' does.",
)
@click.option(
    "--as-is", is_flag=True, help="Leave the environment and the standard streams of the job untouched."
)
@click.option(
    "--attach",
    metavar="PID",
    type=WholeNumber(2, 2**31),
    help="Watch a job that is already running, by its process ID, and start nothing.",
)
@click.option(
    "--status", is_flag=True, help="Print the state of the job that is watched with this --dir, and exit."
)
@options.launch_place
@options.key_file
@click.option(
    "--meet-port",
    type=WholeNumber(1, 65535),
    help="TCP port on node 0 for the watchers.  [master port - 10007]",
)
@options.outputs
@click.option("-q", "--quiet", is_flag=True, help="Print only findings.")
@click.pass_context
def watch(context: click.Context, /, **option_values: Any) -> None:
    """Run COMMAND, and name the rank that hangs or fails.

    Names the source line it is at, and the ranks that wait for it.

    The job gets the same arguments, working directory, environment, standard streams and signals as without watch, and
    watch exits with the job's exit code. Ranks are the descendants of COMMAND that have a LOCAL_RANK (torchrun and
    others), or COMMAND itself. A job hangs when nothing has advanced for --patience seconds, the Python stacks of its
    ranks do not change, and at least one rank is inside a collective. Reading stacks needs py-spy: pip install
    'ncclcheck[watch]'.

    Start it on every node, in place of the job: the watchers connect to each other, and node 0 judges all ranks. To
    have the stacks read at once, send SIGUSR1 to watch.

    Exit codes: the job's own; 4 after --on-hang stop. With --attach: 0, or 1 if there is a finding. With --status: as
    with --attach, or 3 if a watcher no longer reports.
    """
    from ncclcheck.cli.outputs import refuse_bad_outputs
    from ncclcheck.cli.watching.status import show_status
    from ncclcheck.cli.watching.watching import attach, run_watched

    if option_values["status"]:
        if option_values["dir_"] is None or option_values["command"] or option_values["attach"]:
            raise UsageError("--status reads what watchers leave in their folder: give --dir DIR, and no job")
        _refuse_idle(context, "--status", {*option_values} - {"status", "dir_"})
        context.exit(show_status(option_values["dir_"]))
    if (option_values["command"] is None) == (option_values["attach"] is None):
        raise UsageError("watch: which job? give its command after '--', or --attach PID of one that runs")
    if option_values["preflight"] and option_values["attach"] is not None:
        raise UsageError(
            "--preflight checks before a job starts, and --attach watches one that runs: leave one out"
        )
    if option_values["attach"] is not None:
        _refuse_idle(context, "--attach", _OF_A_START)
    refuse_bad_outputs(option_values)
    context.exit(run_watched(option_values) if option_values["command"] else attach(option_values))


def _refuse_idle(context: click.Context, mode: str, idle: Collection[str]) -> None:
    """Raise UsageError where an option was given that has no effect in this mode."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in idle and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[-1]} has no effect with {mode}: leave one out")
