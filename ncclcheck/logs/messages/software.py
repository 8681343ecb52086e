"""What the messages of torch, Gloo, UCX, launchers, platforms and the kernel mean: the tables beside this module.

Sources: the programs' own (scripts/message_texts lists them); each group names its files. A text may stand anywhere in
a line, since the program's own prefix, a time or an address may stand before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from ncclcheck.logs.messages.known import Group, Text, load_groups, most_letters_first, parts_in_order
from ncclcheck.logs.patterns.automaton import all_of

TABLES = (
    "torch.toml",
    "transports.toml",
    "launchers.toml",
    "platform.toml",
    "serving.toml",
    "frameworks.toml",
    "jax.toml",
    "engines.toml",
    "accelerators.toml",
    "clusters.toml",
    "data.toml",
    "training.toml",
    "vision.toml",
    "inference.toml",
    "science.toml",
    "system.toml",
)
SHORTEST_NEEDLE = 8  # letters of a text's longest part: fewer would be in too many lines
_LONGEST = 2000  # of a line that is compared


@cache
def software_groups() -> tuple[Group, ...]:
    """Return the groups of all tables."""
    return tuple(group for table in TABLES for group in load_groups(table))


def needle(text: str) -> str:
    """Return the longest part of a text between its asterisks, in lower case: a line needs it to match."""
    return max(text.split("*"), key=len).strip().lower()


def needles() -> Iterator[str]:
    """Yield the texts of which a line, in lower case, needs one to be a message of the tables."""
    return (needle(text) for group in software_groups() for text in group.texts)


def message_in(line: str) -> Group | None:
    """Return the group of the message in the line, the one with the most letters; None where there is none."""
    line = line[:_LONGEST]
    by_needle, needles_in = _index()
    found: Text | None = None
    for text in needles_in(line.lower()):
        for known in by_needle[text]:
            if (found is None or known.letters > found.letters) and parts_in_order(line, known.parts):
                found = known
    return None if found is None else found.group


@cache
def _index() -> tuple[dict[str, list[Text]], Callable[[str], Iterable[str]]]:
    by_needle: dict[str, list[Text]] = {}
    for known in most_letters_first(software_groups()):
        by_needle.setdefault(needle("*".join(known.parts)), []).append(known)
    return by_needle, all_of(by_needle)
