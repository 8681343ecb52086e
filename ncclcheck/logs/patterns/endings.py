"""How programs say that they ended well, or got somewhere: the table endings.toml, as patterns of topics.

A line by which a program tells that its whole run ended well has its text as the value `whole`; that of a server which
is ready, or that answered, as the value `serves`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table

Says = Literal["finished", "saved", "result", "ready", "served"]


class Ending(Struct, frozen=True, forbid_unknown_fields=True):
    """What a line says, its pattern, and which programs print it."""

    says: Says
    pattern: str
    programs: str


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    ending: tuple[Ending, ...]


@cache
def endings() -> tuple[Ending, ...]:
    """Return the table."""
    return load_table("ncclcheck.logs.patterns", "endings.toml", _Table).ending


def is_result(text: str) -> bool:
    """Return True if the line tells a result, or what was kept: an orderly shutdown may follow a failure as well."""
    return any(pattern.search(text) for pattern in _of_results())


@cache
def _of_results() -> tuple[re.Pattern[str], ...]:
    found = patterns("saved", "result")
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in found)


def patterns(*says: Says, value: str = "") -> tuple[str, ...]:
    """Return the patterns of the lines that say one of these; with a `value`, the match is kept under that name."""
    found = (ending.pattern for ending in endings() if ending.says in says)
    return tuple(f"(?P<{value}>{pattern})" if value else pattern for pattern in found)
