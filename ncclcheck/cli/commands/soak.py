"""`ncclcheck soak`: the same collective for hours, with what changes and what else moves then."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options


@click.command()
@options.soak_options
@click.option("--no-preflight", is_flag=True, help="Skip the checks and only measure.")
@options.preflight_options
@options.report_options
@click.pass_context
def soak(context: click.Context, /, **given: Any) -> None:
    """Measure for hours: does the network stay as fast?

    Start it as bench is started. It measures one collective in blocks, reads the nodes' counters after each of them,
    and names the node and direction of a drop by rounds of pairs. Every block is a line on disk, so a kill loses one
    at most. It uses the network of the nodes as a job does: --duty leaves a part of the time to others.
    """
    from ncclcheck.cli.commands.session import perform

    context.exit(perform("soak", given))
