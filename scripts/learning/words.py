"""How much each word speaks for a job at work, against one in trouble: learnt from lines whose meaning is known.

At work: the lines of logs labelled healthy, and how programs say that they ended (tests/logs/patterns/endings.toml).
In trouble: the texts of the message tables that name a cause or follow from one, and lines that only sound like an end.
The first half of other logs, where jobs start, speaks against an end as well, but less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, toml

from ncclcheck.logs.messages.known import groups
from ncclcheck.logs.messages.software import software_groups
from ncclcheck.logs.patterns.work_words import Words, words_of
from tests.logs.rounds import HeldOut

FILE = Path(__file__).parents[2] / "ncclcheck/logs/patterns/work_words.toml"
ENDINGS = Path(__file__).parents[2] / "tests/logs/patterns/endings.toml"
_SMOOTHING = 0.5  # lines: what a word counts that no line of a kind has
_OF_STARTS = 0.3  # how much a line of a start counts, against one of trouble
_FIRST_HALF = 0.5  # of a log
_IN_LOGS = 2  # a word of one log alone may be a name
_LEAST = 0.2  # a weight this near to that of a word nobody knows says nothing


class Endings(Struct, frozen=True, forbid_unknown_fields=True):
    """How programs say that they ended, and lines that only sound like it."""

    ended: tuple[str, ...]
    only_sounds: tuple[str, ...]


class _Lines(Struct):
    """In how many lines of one kind each word stands, and how many lines there are."""

    having: Counter[str]
    number: int = 0

    def take(self, words: Iterable[str]) -> None:
        self.having.update(words)
        self.number += 1

    def share(self, word: str) -> float:
        return (self.having[word] + _SMOOTHING) / (self.number + 1)


def endings() -> Endings:
    """Return the lines of the file."""
    return toml.decode(ENDINGS.read_bytes(), type=Endings)


def learn(logs: Iterable[HeldOut], endings: Endings) -> Words:
    """Return the weights of words: the logarithm of how much likelier a word is at work than in trouble."""
    logs = tuple(logs)
    work = _at_work(log for log in logs if log.causes == ("healthy",))
    for line in endings.ended:
        work.take(words_of(line))
    trouble, starts = _Lines(Counter()), _Lines(Counter())
    for line in (*endings.only_sounds, *_texts_of_trouble()):
        trouble.take(words_of(line))
    for log in logs:
        if log.causes != ("healthy",):
            for place, words in _different_lines(log.text):
                if place < _FIRST_HALF:
                    starts.take(words)
    return _weighted(work, trouble, starts)


def _at_work(logs: Iterable[HeldOut]) -> _Lines:
    """Return the lines of these logs, with the words that several logs have."""
    lines = _Lines(Counter())
    logs_having: Counter[str] = Counter()
    for log in logs:
        different = [words for _, words in _different_lines(log.text)]
        for words in different:
            lines.take(words)
        logs_having.update({word for words in different for word in words})
    for word, number in logs_having.items():
        if number < _IN_LOGS:
            del lines.having[word]
    return lines


def _texts_of_trouble() -> Iterator[str]:
    """Yield the texts of messages that name a cause or follow from one."""
    for group in (*groups(), *software_groups()):
        if group.kind in ("cause", "consequence"):
            yield from group.texts


def _different_lines(text: str) -> Iterator[tuple[float, frozenset[str]]]:
    """Yield each line that has other words than those before it: where it stands, from 0 to 1, and its words."""
    lines = text.splitlines()
    seen: set[frozenset[str]] = set()
    for number, line in enumerate(lines):
        words = words_of(line)
        if words and words not in seen:
            seen.add(words)
            yield number / len(lines), words


def _weighted(work: _Lines, trouble: _Lines, starts: _Lines) -> Words:
    def weight(word: str) -> float:
        against = max(trouble.share(word), _OF_STARTS * starts.share(word))
        return round(math.log(work.share(word) / against), 1)

    unknown = weight("")
    heard = {word: weight(word) for word in sorted(work.having)}
    others = {*trouble.having, *starts.having} - heard.keys()
    elsewhere = {word: weight(word) for word in sorted(others) if abs(weight(word) - unknown) >= _LEAST}
    return Words(unknown=unknown, work=heard, elsewhere=elsewhere)


def as_toml(table: Words) -> str:
    """Return the table as the file that the package reads."""
    parts = [
        "# How much each word speaks for a job at work, against one in trouble. Written by scripts/learn_words.",
        f"unknown = {table.unknown}",
    ]
    for name, words in (("work", table.work), ("elsewhere", table.elsewhere)):
        parts += ["", f"[{name}]", *(f"{_key(word)} = {weight}" for word, weight in words.items())]
    return "\n".join(parts) + "\n"


def _key(word: str) -> str:
    return word if word.isascii() and word.isalpha() else f'"{word}"'
