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
    "--root",
    type=FileName(),
    metavar="TREE",
    help="Read the recorded machine whose /sys, /proc and /dev are in this folder, and nothing of this one.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json"], case_sensitive=False),
    default="json",
    help="JSON is the only one.",
)
def facts(*, code: tuple[str, ...], root: str | None, format_: str) -> None:
    """Print the facts of this node as JSON, which --from takes."""
    from ncclcheck.model.errors import UsageError

    if root is not None and code:
        raise UsageError(
            "--code: the code is on this machine, of which --root reads nothing: give one of them"
        )
    from ncclcheck.cli.screen import write_out
    from ncclcheck.model.codec import encode_pretty
    from ncclcheck.run.facts import recorded_machine, this_node

    del format_  # there is only one
    document = this_node(os.environ, code) if root is None else recorded_machine(root)
    write_out(encode_pretty(document) + "\n")
