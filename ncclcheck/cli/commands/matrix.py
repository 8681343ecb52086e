"""`ncclcheck matrix`: how fast the network between the nodes is, and what it looks like."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options
from ncclcheck.cli.benchmarks import measuring_options


@click.command()
@measuring_options.matrix_options
@options.preflight_options("matrix")
@options.matrix_report_options
@click.pass_context
def matrix(context: click.Context, /, **option_values: Any) -> None:
    """How fast is the network between these nodes?

    Start it like preflight. Up to 64 nodes measure every pair once, in rounds of pairs that all measure at the same
    time; of more nodes it only finds the leaves (nodes behind the same switch). It then measures all nodes at once,
    within and across leaves, repeats the slowest paths, and prints the hosts leaf by leaf. A network without leaves is
    reported as flat. It changes nothing.
    """
    from ncclcheck.cli.commands.session import perform

    context.exit(perform("matrix", option_values))
