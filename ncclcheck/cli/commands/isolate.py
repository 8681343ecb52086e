"""`ncclcheck isolate`: which nodes or links are bad."""

from __future__ import annotations

from typing import Any

import click

from ncclcheck.cli import options


@click.command()
@options.isolate_options
@options.preflight_options
@options.report_options
@click.pass_context
def isolate(context: click.Context, /, **given: Any) -> None:
    """Which of these nodes or links is slow, hangs or fails?

    Start it as preflight is started, on the nodes of a job that was slow or hung. Pairs of nodes measure both
    directions at the same time, in a few rounds; suspects then meet sound nodes, until the chance of naming a sound
    one is below one in a hundred runs. It names nodes, links and groups of nodes behind one slow path, and prints
    what excludes them; it never runs that.
    """
    from ncclcheck.cli.commands.session import perform

    context.exit(perform("isolate", given))
