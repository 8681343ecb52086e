"""What the shell offers when TAB is pressed: names of checks, collectives, sizes and element types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

import click
from click.shell_completion import CompletionItem

_SIZES = ("1M-1G", "1M-1G:4x", "1M-16M:+1M", "8,1K,4M", "1M", "16M", "64M", "256M", "1G")


def check_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Slugs of the checks of nodes, each with its title; codes where one was begun. Also after a comma."""
    del ctx, param
    from ncclcheck.checks.registry import all_checks

    return _names(
        incomplete,
        {check.slug: check.title for check in all_checks()},
        {check.code: check.title for check in all_checks()},
    )


def any_check(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Slugs of all checks, the causes that `explain` names included."""
    del ctx, param
    from ncclcheck.checks.registry import every_check

    every = every_check()
    return _names(
        incomplete, {check.slug: check.title for check in every}, {check.code: check.title for check in every}
    )


def ops(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the collectives and `all`, also after a comma."""
    del ctx, param
    from ncclcheck.model.bench import Op

    return _names(incomplete, dict.fromkeys((*get_args(Op), "all"), ""), {})


def sizes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Sizes as they are written: a range that doubles, with a factor, with a step; a list; single ones."""
    del ctx, param
    return _begun(incomplete, "", dict.fromkeys(_SIZES, ""))


def dtypes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the element types."""
    del ctx, param
    from ncclcheck.bench.footprint import ELEMENT_BYTES

    return _begun(incomplete, "", dict.fromkeys(ELEMENT_BYTES, ""))


def _names(incomplete: str, names: dict[str, str], codes: dict[str, str]) -> list[CompletionItem]:
    before, comma, begun = incomplete.rpartition(",")
    taken = set(before.split(","))
    offered = codes if codes and begun[:2].upper() == "NC" and begun[2:3].isdigit() else names
    return _begun(
        begun, before + comma, {name: title for name, title in offered.items() if name not in taken}
    )


def _begun(begun: str, before: str, offered: dict[str, str]) -> list[CompletionItem]:
    plain = begun.replace("_", "-").lower()
    fitting: Iterable[str] = (name for name in offered if name.replace("_", "-").lower().startswith(plain))
    return [CompletionItem(before + name, help=offered[name] or None) for name in fitting]
