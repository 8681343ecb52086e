"""`ncclcheck explain`: the cause of a failed job, from what it left."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options
from ncclcheck.model.errors import UsageError

USAGE = 2


@click.command()
@click.argument("logs", nargs=-1, metavar="LOG...")
@options.output_format
@options.outputs
@options.verbosity
@click.pass_context
def explain(context: click.Context, /, *, logs: tuple[str, ...], **given: Any) -> None:
    """Name the cause of a failed job from its logs.

    LOG is a file (gzip too), a folder, or - for standard input. Give the logs of all ranks at once.

    Exit codes: 0 nothing failed; 1 the cause is named; 3 the logs cannot tell, and what to collect.
    """
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.run.explaining import explain_files

    if not logs:
        raise UsageError("explain: which logs? give files or folders, or - for standard input")
    refuse_bad_outputs(given)
    report = explain_files(logs)
    all_written = write_files(report, None, given)
    show(report, given)
    context.exit(report.verdict.exit_code if all_written else USAGE)
