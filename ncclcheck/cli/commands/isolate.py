"""`ncclcheck isolate`: which nodes or links are bad."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options
from ncclcheck.cli.benchmarks import measuring_options


@click.command()
@measuring_options.isolate_options
@options.preflight_options("isolate")
@options.report_options
@click.pass_context
def isolate(context: click.Context, /, **option_values: Any) -> None:
    """Which of these nodes or links is slow, hangs or fails?

    Start it like preflight, on the nodes of a job that was slow or hung. Pairs of nodes measure both directions at the
    same time, in a few rounds. Suspects are then paired with good nodes, until fewer than one run in a hundred would
    blame a good node. It names nodes, links and groups of nodes behind a slow path, and prints the commands that
    exclude them, but never runs them.
    """
    from ncclcheck.cli.commands.session import perform

    context.exit(perform("isolate", option_values))
