"""`ncclcheck soak`: the same collective for hours, with what changes and what else moves then."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options
from ncclcheck.cli.benchmarks import measuring_options


@click.command()
@measuring_options.soak_options
@click.option("--no-preflight", is_flag=True, help="Only measure, without the checks.")
@options.preflight_options("soak")
@options.report_options
@click.pass_context
def soak(context: click.Context, /, **option_values: Any) -> None:
    """Measure for hours: does the network stay fast?

    Start it like bench. It measures one collective in blocks, reads the nodes' counters after each block, and tests
    pairs of nodes to find the node and direction behind a drop in bandwidth. Every block is saved to disk when it
    ends, so a kill loses at most one. It loads the network as a job does; --duty leaves part of the time to others.
    """
    from ncclcheck.cli.commands.session import perform

    context.exit(perform("soak", option_values))
