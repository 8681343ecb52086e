"""`ncclcheck checks`: the list of checks, or the manual page of one."""

from __future__ import annotations

import inspect
from contextlib import suppress

import click

from ncclcheck.cli.completion import any_check
from ncclcheck.model.errors import UsageError


@click.command()
@click.argument("slug", required=False, shell_complete=any_check)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "md"], case_sensitive=False),
    default="text",
    help="Output format; md prints the manual of all checks as one page.  [text]",
)
def checks(*, slug: str | None, format_: str) -> None:
    """List the checks, or explain the one with this SLUG or code."""
    from ncclcheck.checks.registry import Check, all_checks, every_check, matching
    from ncclcheck.cli.request import refuse_unknown_checks
    from ncclcheck.cli.screen import write_out
    from ncclcheck.report.manual import manual_page

    def entry(check: Check) -> str:
        return f"{check.code}  {check.slug:<{longest}}  {check.title}\n"

    every = every_check()
    if format_ == "md":
        if slug is not None:
            raise UsageError(f"--format md is of all checks: leave {slug!r} out")
        write_out(manual_page(every))
        return
    longest = max((len(check.slug) for check in every), default=0)
    if slug is None:
        write_out("".join(entry(check) for check in every))
        return
    codes = of_logs(slug)
    if not codes:
        refuse_unknown_checks([slug], "checks")
    if any(check.slug == slug.lower().replace("_", "-") for check in all_checks()) or not codes:
        codes |= matching([slug])
    chosen = [check for check in every if check.code in codes]
    if len(chosen) > 1:
        write_out("".join(entry(check) for check in chosen))
        return
    (check,) = chosen
    write_out(f"{check.code} {check.slug}: {check.title}\n\n{inspect.cleandoc(check.manual)}\n")


def of_logs(name: str) -> frozenset[str]:
    """Codes of the causes and of the checks of running jobs that `name` means; none where it means checks of nodes."""
    from ncclcheck.checks.registry import Subject, matching

    codes: frozenset[str] = frozenset()
    subjects: tuple[Subject, ...] = ("log", "job")
    for subject in subjects:
        with suppress(UsageError):
            codes |= matching([name], subject)
    return codes
