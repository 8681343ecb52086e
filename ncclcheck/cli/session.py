"""The commands that run on nodes: preflight, bench and run; and the run itself for whoever else needs one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ncclcheck.cli import options
from ncclcheck.model.errors import UsageError

if TYPE_CHECKING:
    from ncclcheck.model.report import Report
    from ncclcheck.run.options import Command, Ended, RunOptions

USAGE = 2


@click.command()
@options.preflight_options
@options.report_options
@click.pass_context
def preflight(context: click.Context, /, **given: Any) -> None:
    """Are these nodes and this network fit for the job?

    Run it on every node as the job will be run (torchrun, srun, mpirun), or by hand with --nnodes, --node-rank and
    --master-addr. Without either it checks this one node.
    """
    context.exit(perform("preflight", given))


@click.command()
@options.bench_options
@click.option("--no-preflight", is_flag=True, help="Measure without checking the nodes first.")
@options.preflight_options
@options.report_options
@click.pass_context
def bench(context: click.Context, /, **given: Any) -> None:
    """How fast are collectives between these nodes, and who is slow?

    Sizes and bandwidths are those of nccl-tests. Without a launcher it uses every GPU of this node, or two gloo ranks
    where there is none.
    """
    context.exit(perform("bench", given))


@click.command()
@options.bench_options
@options.preflight_options
@options.report_options
@click.pass_context
def run(context: click.Context, /, **given: Any) -> None:
    """Preflight and bench, then one report with the settings to use."""
    context.exit(perform("run", given))


def perform(command: Command, given: Mapping[str, Any]) -> int:
    """Run or replay, write and print the report, and return the exit code."""
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.cli.request import run_options

    refuse_bad_outputs(given)
    ended = ended_run(run_options(command, given), given)
    code = ended.report.verdict.exit_code
    all_written = not ended.writes or write_files(
        ended.report, ended.saved, given
    )  # on every node: the report is the same
    if ended.prints:
        show(ended.report, given)
    ended.release()
    return (
        code if all_written else code or USAGE
    )  # CI that waits for the file must not take its absence for a pass


def ended_run(run: RunOptions, given: Mapping[str, Any]) -> Ended:
    """The run of `run`, or with --from its replay. A bug in it still ends as a report, with exit code 70."""
    from ncclcheck.cli.documents import load_saved

    try:
        if given.get("from_"):
            return _replayed(run, load_saved(given["from_"], run.command), given)
        return _live(run, given)
    except UsageError:
        raise
    except Exception as error:  # whatever it is, the user gets a report, and CI a file
        return _bug(error, run, given)


def _live(run: RunOptions, given: Mapping[str, Any]) -> Ended:
    from ncclcheck.cli.screen import progress
    from ncclcheck.run.session import run_session

    return run_session(run, os.environ, progress(quiet=bool(given.get("quiet"))))


def _replayed(run: RunOptions, saved: Any, given: Mapping[str, Any]) -> Ended:
    from ncclcheck.run.replay import replay

    _refuse_launch_flags(given)
    return replay(saved, run)


def _refuse_launch_flags(given: Mapping[str, Any]) -> None:
    for name in ("nnodes", "node_rank", "master_addr", "master_port", "nproc_per_node"):
        if given.get(name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} places a run on nodes, but --from replays one that is over: leave one out"
            )


def _bug(error: Exception, run: RunOptions, given: Mapping[str, Any]) -> Ended:
    from datetime import datetime, timezone

    from ncclcheck.cli.crash import describe, save_traceback
    from ncclcheck.cli.documents import SAVED_KIND
    from ncclcheck.model.report import SCHEMA_VERSION, Advice
    from ncclcheck.model.saved import Saved
    from ncclcheck.model.snapshot import Snapshot
    from ncclcheck.report.build import build_report
    from ncclcheck.run.options import Ended

    path = save_traceback(error, [Path(file).parent for file in given.get("output") or ()])
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    report: Report = build_report(
        Snapshot(nodes=()),
        (),
        Advice(),
        command=run.command,
        created=created,
        elapsed_s=0.0,
        fail_on=run.fail_on,
        require=(),
        interrupted=False,
        bug=describe(error, path),
    )
    saved = Saved(
        SCHEMA_VERSION, SAVED_KIND, report.tool, run.command, created, 0.0, False, Snapshot(nodes=())
    )
    return Ended(report, saved, prints=True)
