"""The options of `bench --try`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ncclcheck.cli.values import FileName, WholeNumber

OPTIONS = (
    click.option(
        "--try",
        "try_",
        multiple=True,
        metavar="NAME=VALUE[,...]",
        help="Compare this setting with the unchanged environment, in fresh processes; repeatable.",
    ),
    click.option(
        "--try-file",
        type=FileName(),
        metavar="FILE",
        help="Read the settings to try from this file, one --try per line.",
    ),
    click.option("--gain", metavar="PCT", help="Advise a setting only if it gains at least this.  [3%]"),
    click.option(
        "--seed",
        type=WholeNumber(0, 2**31),
        help="Seed for the order in which --try measures.  [random; reported]",
    ),
)


def tries(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add them to a command, in their order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
