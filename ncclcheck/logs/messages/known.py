"""What NCCL means by a text of its level WARN, or by torch's `Last error:`: the table nccl.toml, read when first asked.

Source: NCCL 2.18 to 2.30, all WARN texts (scripts/message_texts lists them).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table

MessageClass: TypeAlias = Literal["cause", "consequence", "harmless"]
About: TypeAlias = Literal["rank", "host", "peer", "pair", "job"]
_LONGEST = 600  # of a text that is compared


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """Texts with one meaning. `cause` and `certainty` are those of the class `cause` only."""

    id: str
    about: About
    means: str
    source: str
    versions: str
    texts: tuple[str, ...]
    kind: MessageClass
    cause: str = ""
    certainty: Literal["", "certain", "likely", "possible"] = ""
    ends: bool = False  # no program goes on after it


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[Group, ...]


class Text(Struct, frozen=True):
    """A text of a group, split at its asterisks."""

    parts: tuple[str, ...]  # between the asterisks, in order
    letters: int
    group: Group


@cache
def groups() -> tuple[Group, ...]:
    """Return all groups of the table of NCCL's warnings."""
    return load_groups("nccl.toml")


def load_groups(table: str) -> tuple[Group, ...]:
    """Return all groups of one of the tables."""
    return load_table("ncclcheck.logs.messages", table, _Table).group


def meaning_of(text: str) -> Group | None:
    """Return the group of a WARN text, without what NCCL prints before it; None for a text that no group has."""
    text = text.strip()[:_LONGEST]
    return next((known.group for known in _texts() if _fits(text, known.parts)), None)


@cache
def _texts() -> tuple[Text, ...]:
    return most_letters_first(groups())


def most_letters_first(listed: Iterable[Group]) -> tuple[Text, ...]:
    """Return the texts of the groups, those with the most letters first."""
    found = [
        Text(tuple(text.split("*")), len(text.replace("*", "")), group)
        for group in listed
        for text in group.texts
    ]
    return tuple(sorted(found, key=lambda known: -known.letters))


def parts_in_order(line: str, parts: tuple[str, ...]) -> bool:
    """Return True if the parts stand in the line in order, anywhere. Each is searched once."""
    position = 0
    for part in parts:
        found = line.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True


def _fits(text: str, parts: tuple[str, ...]) -> bool:
    """Return True if the parts stand in the text in order, the first at its start, the last at its end.

    Each part is searched once, from where the last one ended, so the time is linear.
    """
    first, *further = parts
    if not text.startswith(first):
        return False
    if not further:
        return text == first
    position = len(first)
    for part in further[:-1]:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    last = further[-1]
    return len(text) - len(last) >= position and text.endswith(last)
