"""`ncclcheck facts`: what this node says of itself."""

from __future__ import annotations

import os

import click

from ncclcheck.cli.values import FileName


@click.command()
@click.option(
    "--code", multiple=True, type=FileName(), metavar="PATH", help="Identify this code too; repeatable."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json"], case_sensitive=False),
    default="json",
    help="JSON is the only one.",
)
def facts(*, code: tuple[str, ...], format_: str) -> None:
    """Print the facts of this node as JSON, which --from takes."""
    from ncclcheck.cli.screen import write_out
    from ncclcheck.model.codec import encode_pretty
    from ncclcheck.run.facts import this_node

    del format_  # there is only one
    write_out(encode_pretty(this_node(os.environ, code)) + "\n")
