"""`ncclcheck report`: a saved report in another format, and `report compare`: what changed from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ncclcheck.cli import options
from ncclcheck.cli.values import FileName
from ncclcheck.model.errors import UsageError

if TYPE_CHECKING:
    from ncclcheck.model.report import Report

REGRESSION, USAGE = 1, 2


class _WithCompare(click.Command):
    """`report FILE`, and `report compare OLD NEW`, which is a command of its own."""

    words = ("compare",)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command that the first argument names."""
        if args[:1] == ["compare"]:
            return compare.make_context(f"{info_name} compare", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command()
@click.argument("old", metavar="OLD", type=FileName(), required=False)
@click.argument("new", metavar="NEW", type=FileName(), required=False)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "md"], case_sensitive=False),
    default="text",
    help="Of standard output.  [text]",
)
@click.option(
    "--tolerance",
    metavar="PCT",
    help="So much bandwidth may be lost before it counts.  [5]",
)
@click.pass_context
def compare(
    context: click.Context, /, *, old: str | None, new: str | None, format_: str, tolerance: str | None
) -> None:
    """Show what changed from the report OLD to the report NEW: verdict, findings, checks, bandwidth, versions, nodes.

    The exit code is 1 if something got worse: the verdict, a further error or warning, a check that became unknown, a
    bandwidth that is significantly lower and by more than --tolerance; else 0.
    """
    from ncclcheck.cli.demands import tolerance_of
    from ncclcheck.cli.screen import is_color_wanted, screen_width, write_out
    from ncclcheck.report.compare import changes
    from ncclcheck.report.text.compare_text import changes_json, changes_markdown, changes_text

    if old is None or new is None:
        raise UsageError("report compare: which reports? give two, the older one first")
    allowed = tolerance_of(tolerance)
    found = changes(_report_in(old), _report_in(new), allowed)
    if format_ == "json":
        write_out(changes_json(found))
    elif format_ == "md":
        write_out(changes_markdown(found))
    else:
        write_out(changes_text(found, width=screen_width(), color=is_color_wanted()))
    context.exit(REGRESSION if found.regressions else 0)


@click.command(cls=_WithCompare)
@click.argument("file", required=False, metavar="FILE | compare OLD NEW", type=FileName())
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a report instead.")
@click.option(
    "--format",
    "format_",
    type=click.Choice([*options.SCREEN_FORMATS, *options.NODE_LISTS], case_sensitive=False),
    default="text",
    help="Format of standard output; the last five list the nodes that isolate named, or the others.  [text]",
)
@options.outputs
@options.verbosity
@click.pass_context
def report(context: click.Context, /, *, file: str | None, schema: bool, **given: Any) -> None:
    """Render a saved report in another format, or compare two.

    FILE is a report in JSON; for a comparison see 'report compare --help'. FILE may also be what --save wrote: it is
    then judged with the usual options. The exit code is 0 if that worked, whatever the report says.
    """
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.cli.screen import write_out
    from ncclcheck.report.document import schema_text

    if schema:
        write_out(schema_text())
        return
    if file is None:
        raise UsageError("report: which FILE? give the report to render, as --output report.json wrote it")
    refuse_bad_outputs(given)
    document = _report_in(file)
    unwritten = write_files(document, None, given)
    all_written = show(document, given, unwritten) and not unwritten
    context.exit(0 if all_written else USAGE)


def _report_in(file: str) -> Report:
    """Return the report in `file`, or build it from the run that the file holds. Raises UsageError."""
    from ncclcheck.cli.documents import load, load_saved
    from ncclcheck.model.report import Report as ReportDocument

    document = load(file, "report")
    if isinstance(document, ReportDocument):
        return document
    from ncclcheck.cli.request import run_options
    from ncclcheck.run.replay import replay

    saved = load_saved(file, "preflight")
    return replay(saved, run_options(saved.command, {})).report
