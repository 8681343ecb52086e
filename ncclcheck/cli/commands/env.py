"""`ncclcheck env`: the advised environment as lines for a shell, or for what else starts a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ncclcheck.cli import options
from ncclcheck.model.exit_code import JUDGED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclcheck.model.report import Report


@click.command()
@options.preflight_options("preflight")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["sh", "json", "docker", "slurm", "k8s"], case_sensitive=False),
    default="sh",
    help="sh: export lines; docker: an env file; slurm: lines for a batch script; k8s: an env list.  [sh]",
)
@click.pass_context
def env(context: click.Context, /, **option_values: Any) -> None:
    """Print the advised environment as lines for a shell.

    In the shell that starts the job: eval "$(ncclcheck env)". Runs a preflight first, or with --from reads a report, a
    saved run or a facts file instead.
    """
    from ncclcheck.advice.allowed import only_allowed
    from ncclcheck.advice.environment_block import render
    from ncclcheck.cli.screen import write_error, write_out

    report = _report(option_values)
    advice, refused = only_allowed(report.advice)
    write_out(render(advice, option_values["format_"]))
    for reason in refused:
        write_error(f"left out of the advice: {reason}")
    verdict = report.verdict
    if verdict.exit_code:
        write_error(f"{'; '.join(verdict.reasons)} ('ncclcheck preflight' shows it all)")
    # A finding that the advice is the cure for is no failure of `env`; not knowing, a bug and an interruption are.
    context.exit(0 if verdict.exit_code in JUDGED else verdict.exit_code)


def _report(option_values: Mapping[str, Any]) -> Report:
    from ncclcheck.cli.commands.session import ended_run
    from ncclcheck.cli.documents import load
    from ncclcheck.cli.request import run_options
    from ncclcheck.model.report import Report

    if option_values.get("from_"):
        document = load(option_values["from_"], "--from")
        if isinstance(document, Report):
            return document
    ended = ended_run(run_options("preflight", option_values), option_values)
    ended.release()
    return ended.report
