"""What a line is about: the topics whose words it has, with what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from ncclcheck.logs.patterns.automaton import all_of
from ncclcheck.logs.patterns.literals import required
from ncclcheck.logs.patterns.topic_tables import ALL_TOPICS


class _Family(Struct, frozen=True):
    """A topic, its words, and texts of which a line must have one to match at all (none: any line may)."""

    topic: str
    words: str
    needs: tuple[str, ...]


_FAMILIES = tuple(
    _Family(topic.name, words, required(words)) for topic in ALL_TOPICS for words in topic.patterns
)
_NEEDED = tuple(sorted({text for family in _FAMILIES for text in family.needs}))
_FAMILIES_OF = {
    text: tuple(number for number, family in enumerate(_FAMILIES) if text in family.needs) for text in _NEEDED
}
_needed_in = all_of(_NEEDED)
_ALWAYS = tuple(number for number, family in enumerate(_FAMILIES) if not family.needs)
TOPIC_PATTERNS = tuple(words for topic in ALL_TOPICS for words in topic.patterns)
TOPICS = frozenset(family.topic for family in _FAMILIES)


def topics(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each topic of `text` once, with the named parts of its first match, in the order of the tables."""
    lowered = text.lower()
    numbers = set(_ALWAYS)
    for needed in _needed_in(lowered):
        numbers.update(_FAMILIES_OF[needed])
    matched: set[str] = set()
    for number in sorted(numbers):
        family = _FAMILIES[number]
        if family.topic in matched:
            continue
        match = _compiled(family.words).search(text)
        if match is not None:
            matched.add(family.topic)
            yield family.topic, {name: value for name, value in match.groupdict().items() if value}


@cache
def _compiled(words: str) -> re.Pattern[str]:
    """Return the pattern, compiled when a line first needs it: one log needs few of them."""
    return re.compile(words, re.IGNORECASE)
