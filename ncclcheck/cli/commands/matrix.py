"""`ncclcheck matrix`: which nodes talk well, and what the network between them looks like."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options


@click.command()
@options.matrix_options
@options.preflight_options
@options.report_options
@click.pass_context
def matrix(context: click.Context, /, **given: Any) -> None:
    """Which of these nodes talk well, and where is the network slow?

    Start it as preflight is started. Up to 64 nodes meet each other once, in rounds of pairs that all measure at the
    same time; of more nodes only the leaves (nodes behind one switch) are found. It measures all nodes at once within
    and across leaves, and the slowest paths again, and prints the hosts in the order of the leaves. Where no leaves
    show, it says flat. It changes nothing.
    """
    from ncclcheck.cli.commands.session import perform

    context.exit(perform("matrix", given))
