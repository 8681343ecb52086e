"""`ncclcheck explain`: the cause of a failed job, from what it left."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options
from ncclcheck.model.errors import UsageError
from ncclcheck.model.exit_code import USAGE


@click.command()
@click.argument("logs", nargs=-1, metavar="LOG...")
@click.option(
    "--ras",
    metavar="HOST[:PORT]",
    help="Ask the NCCL RAS thread of a job that is running or hanging now (NCCL 2.24 and later).  [port 28028]",
)
@options.output_format
@options.outputs
@options.verbosity
@click.pass_context
def explain(
    context: click.Context, /, *, logs: tuple[str, ...], ras: str | None, **option_values: Any
) -> None:
    """Name the cause of a failed job from its logs.

    LOG is a file (also compressed with gzip), a folder, or - for standard input. Give the logs of all ranks at once. A
    file may also be a flight recorder dump of torch (/tmp/nccl_trace_rank_N; pickle or JSON): with the dumps of all
    ranks, explain names the rank that is behind, and the collective. Pickles are never executed.

    --ras asks the running job on one of its nodes, twice within seconds: only counts that do not grow mean a hang.

    Exit codes: 0 nothing failed; 1 the cause is named; 3 inconclusive (the report says what to collect).
    """
    from ncclcheck.cli.explaining import explain_files, explain_ras
    from ncclcheck.cli.files import refuse_hung
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.cli.screen import write_error

    if ras is not None and logs:
        raise UsageError("explain: --ras asks a running job: give it without files")
    if not logs and ras is None:
        raise UsageError("explain: which logs? give files or folders, or - for standard input")
    refuse_bad_outputs(option_values)
    for log in logs:
        refuse_hung(log, "explain")
    say = (lambda _: None) if option_values["quiet"] else write_error
    report = explain_files(logs, say) if ras is None else explain_ras(ras)
    unwritten = write_files(report, None, option_values)
    all_written = show(report, option_values, unwritten) and not unwritten
    context.exit(report.verdict.exit_code if all_written else report.verdict.exit_code or USAGE)
