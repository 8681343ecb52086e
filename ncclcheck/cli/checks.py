"""`ncclcheck checks`: the list of checks, or the manual page of one."""

from __future__ import annotations

import inspect

import click


@click.command()
@click.argument("slug", required=False)
def checks(*, slug: str | None) -> None:
    """List the checks, or explain the one with this SLUG or code."""
    from ncclcheck.checks.registry import Check, all_checks, matching
    from ncclcheck.cli.request import refuse_unknown_checks
    from ncclcheck.cli.screen import write_out

    def entry(one: Check) -> str:
        return f"{one.code}  {one.slug:<{longest}}  {one.title}\n"

    longest = max((len(one.slug) for one in all_checks()), default=0)
    if slug is None:
        write_out("".join(entry(one) for one in all_checks()))
        return
    refuse_unknown_checks([slug], "checks")
    chosen = [one for one in all_checks() if one.code in matching([slug])]
    if len(chosen) > 1:
        write_out("".join(entry(one) for one in chosen))
        return
    (one,) = chosen
    write_out(f"{one.code} {one.slug}: {one.title}\n\n{inspect.cleandoc(one.manual)}\n")
