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
        help="Measure this setting against the environment as it is, in fresh processes; repeatable.",
    ),
    click.option("--try-file", type=FileName(), metavar="FILE", help="Settings to try, one --try per line."),
    click.option("--gain", metavar="PCT", help="Least gain that makes a tried setting advice.  [3%]"),
    click.option(
        "--seed", type=WholeNumber(0, 2**31), help="Seed of the order of --try.  [random; it is reported]"
    ),
)


def tries(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add them to a command, in their order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
