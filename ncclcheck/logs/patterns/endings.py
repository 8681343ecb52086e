"""The last words of programs that ended, are ready, or kept something: the table endings.toml.

They raise no doubt about a job at work. They prove no good end: that is what topic "finished" is for (topics_program).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table

Says = Literal["finished", "saved", "result", "ready", "served"]


class Ending(Struct, frozen=True, forbid_unknown_fields=True):
    """What a line says (for the reader and the tests), its pattern, and which programs print it."""

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
    """Return True if the line tells an end, a result or what was kept.

    Such a line alone proves no good end: a part of the job, a failed one or its clean-up may print it as well.
    """
    return any(pattern.search(text) for pattern in _compiled())


@cache
def _compiled() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(ending.pattern, re.IGNORECASE) for ending in endings())
