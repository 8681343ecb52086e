"""`ncclcheck report`: a saved report in another format."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options
from ncclcheck.cli.values import FileName
from ncclcheck.model.errors import UsageError

USAGE = 2


@click.command()
@click.argument("file", required=False, metavar="FILE", type=FileName())
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a report instead.")
@options.output_format
@options.outputs
@options.verbosity
@click.pass_context
def report(context: click.Context, /, *, file: str | None, schema: bool, **given: Any) -> None:
    """Render the saved report FILE (JSON) in another format.

    The exit code is 0 if that worked, whatever the report says.
    """
    from ncclcheck.cli.documents import load_report
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.cli.screen import write_out
    from ncclcheck.report.document import schema_text

    if schema:
        write_out(schema_text())
        return
    if file is None:
        raise UsageError("report: which FILE? give the report to render, as --output report.json wrote it")
    refuse_bad_outputs(given)
    document = load_report(file)
    all_written = write_files(document, None, given)
    show(document, given)
    context.exit(0 if all_written else USAGE)
