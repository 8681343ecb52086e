"""`ncclcheck report`: a saved report in another format; `report compare`: what changed; `report merge`: a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ncclcheck.cli import options
from ncclcheck.cli.values import FileName
from ncclcheck.model.errors import UsageError
from ncclcheck.model.exit_code import FOUND, USAGE
from ncclcheck.model.formats.choices import NODE_LISTS, SCREEN_FORMATS

if TYPE_CHECKING:
    from ncclcheck.model.formats.shared_values import SharedReader
    from ncclcheck.model.report import Report


class _WithWords(click.Command):
    """`report FILE`, and `report compare` and `report merge`, which are commands of their own."""

    words = ("compare", "merge")

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command that the first argument names."""
        for subcommand in (compare, merge):
            if args[:1] == [subcommand.name]:
                return subcommand.make_context(f"{info_name} {subcommand.name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command()
@click.argument("old", metavar="OLD", type=FileName(), required=False)
@click.argument("new", metavar="NEW", type=FileName(), required=False)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "md"], case_sensitive=False),
    default="text",
    help="Format of standard output.  [text]",
)
@click.option(
    "--tolerance",
    metavar="PCT",
    help="Loss of bandwidth that is not reported.  [5%]",
)
@click.pass_context
def compare(
    context: click.Context, /, *, old: str | None, new: str | None, format_: str, tolerance: str | None
) -> None:
    """Show what changed from the report OLD to the report NEW: verdict, findings, checks, bandwidth, versions, nodes.

    The exit code is 1 if something got worse: the verdict, a new error or warning, a check that became unknown, or a
    bandwidth that dropped significantly and by more than --tolerance. Otherwise it is 0.
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
    context.exit(FOUND if found.regressions else 0)


@click.command()
@click.argument("files", metavar="FILE...", type=FileName(), nargs=-1)
@options.output_format
@options.outputs
@options.verbosity
@click.pass_context
def merge(context: click.Context, /, *, files: tuple[str, ...], **option_values: Any) -> None:
    """Merge the reports of single nodes into one report of the fleet.

    Keeps the findings of all files, and runs the checks that compare nodes over all of them, as in a single run. A
    file that holds no report makes the result inconclusive. The exit code is that of the merged report.
    """
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.model.formats.shared_values import SharedReader
    from ncclcheck.model.report import CheckEntry
    from ncclcheck.report.fleet.merge import Unread, merged

    if not files:
        raise UsageError(
            "report merge: which FILES? give the reports of the nodes, as --output FILE.json wrote them"
        )
    refuse_bad_outputs(option_values)
    reports, unread, reader = [], [], SharedReader()
    known: dict[CheckEntry, CheckEntry] = {}  # equal ones are one object: nodes of a fleet are much alike
    for file in files:
        try:
            report = _report_in(file, reader)
            checks = tuple(known.setdefault(entry, entry) for entry in report.checks)
            reports.append(replace(report, checks=checks))
        except UsageError as error:
            unread.append(Unread(file, str(error).partition(f"{file}: ")[2] or str(error)))
    if not reports:
        raise UsageError(f"report merge {unread[0].file}: {unread[0].why}")
    document = merged(reports, unread)
    unwritten = write_files(document, None, option_values)
    all_written = show(document, option_values, unwritten) and not unwritten
    context.exit(document.verdict.exit_code if all_written else document.verdict.exit_code or USAGE)


@click.command(cls=_WithWords)
@click.argument("file", required=False, metavar="FILE | compare OLD NEW | merge FILE...", type=FileName())
@click.option("--schema", is_flag=True, help="Print the JSON Schema of reports instead.")
@click.option(
    "--format",
    "format_",
    type=click.Choice([*SCREEN_FORMATS, *NODE_LISTS], case_sensitive=False),
    default="text",
    help="Format of standard output; the last five list the nodes that isolate found bad, or the good ones.  [text]",
)
@options.outputs_or_csv
@options.verbosity
@click.pass_context
def report(context: click.Context, /, *, file: str | None, schema: bool, **option_values: Any) -> None:
    """Render a saved report, compare two, or merge many.

    FILE is a report in JSON, a run that --save wrote, or the folder of a soak, even while the soak is running; runs and
    soaks are judged with the default options. The exit code is 0 if the report was rendered, whatever its verdict.

    See also 'report compare --help' and 'report merge --help'.
    """
    from ncclcheck.cli.outputs import refuse_bad_outputs, show, write_files
    from ncclcheck.cli.screen import write_out
    from ncclcheck.report.document import schema_text
    from ncclcheck.report.formats import SUFFIXES, WITH_TABLES, lacks

    if schema:
        write_out(schema_text())
        return
    if file is None:
        raise UsageError("report: which FILE? give the report to render, as --output report.json wrote it")
    document = _report_in(file)
    if why := lacks(document, option_values["format_"]):
        raise UsageError(f"report {file} --format {option_values['format_']}: {why}")
    was_tried = document.bench is not None and document.bench.trials is not None
    refuse_bad_outputs(option_values, WITH_TABLES if document.matrix is not None or was_tried else SUFFIXES)
    unwritten = write_files(document, None, option_values)
    all_written = show(document, option_values, unwritten) and not unwritten
    context.exit(0 if all_written else USAGE)


def _report_in(file: str, reader: SharedReader | None = None) -> Report:
    """Return the report in `file`, or build it from the run that the file holds. Raises UsageError."""
    from ncclcheck.cli.documents import as_run, load
    from ncclcheck.cli.files import is_folder

    if is_folder(file):
        from ncclcheck.cli.benchmarks.soak_folder import report_of_folder

        return report_of_folder(file)
    from ncclcheck.model.report import Report as ReportDocument

    document = load(file, "report", reader)
    if isinstance(document, ReportDocument):
        return document
    from ncclcheck.cli.request import run_options
    from ncclcheck.run.replay import replay

    saved = as_run(document, "preflight")
    return replay(saved, run_options(saved.command, {})).report
