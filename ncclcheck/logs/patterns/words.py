"""Whether a line sounds like a job at work or one that ended well, by its words. Their weights are learnt.

`scripts/learn_words` reads the labelled logs of the tests and the tables of messages, and writes words.toml. It tells
nothing of a line that a table knows; it is for the last words of programs that nobody has shown us.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table

# a word, or what stands between two capitals of one: `saveCheckpoint`, `NCCL`; each sign of a script without spaces
_WORD = re.compile(
    r"[A-Z]{2,40}(?![a-z])|[A-Za-z][a-z']{1,40}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W\d_a-zA-Z]{2,40}"
)
_MOST_WORDS = 40
_UNIT = re.compile(r"[^A-Za-z]*\d")
_TROUBLE = re.compile(
    r"^\s*File \"|: +\|\s*$|"  # of a stack, and a bar that has not begun
    r"wait|\bnot\b|n't\b|unavailable|\bgone\b|\blost|\bgiv|quit|silent|fail|error|exit|code|kill|dead|left|no space|"
    r"abnormal|exceed|limit|stop(?!ping)|cancel|heartbeat|\bcores?\b|trace|preempt|quota|diverg|throttl|retr(?:y|ies)|"
    r"slow|since|\b5\d\d\b|restart|reload|remov|reclaim|\bnan\b|overflow|skipp|stopping (?:all|the) ",
    re.IGNORECASE,
)
_FEW = 3
_KNOWN = 0.5  # of the words of a line, at least


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of a word that nobody knows, of those heard from jobs at work, and of those heard elsewhere only.

    A weight is the logarithm of how much likelier the word is at work than in trouble.
    """

    unknown: float
    work: dict[str, float]
    elsewhere: dict[str, float]


def words_of(text: str) -> frozenset[str]:
    """Return the words of a line, without digits, in small letters."""
    return frozenset(word.lower() for word in _WORD.findall(text)[:_MOST_WORDS])


def sounds_like_work(text: str) -> bool:
    """Return True if most words of the line are those of jobs at work, and none is one of trouble."""
    return is_of_work(text, _table())


def is_foreign(text: str) -> bool:
    """Return True if the line has words, and most of them are of no job at work that was ever read."""
    words = words_of(text)
    return len(words) >= _FEW and sum(word in _table().work for word in words) < _KNOWN * len(words)


def is_of_work(text: str, table: Words) -> bool:
    """Return True if the line sounds like work by these weights. A single word after a number is its unit."""
    if _TROUBLE.search(text):
        return False
    words = words_of(text)
    heard = [word for word in words if word in table.work]
    if len(heard) < max(_KNOWN * len(words), 1) or (len(heard) == 1 and _UNIT.match(text)):
        return False
    return sum(table.work.get(word, table.elsewhere.get(word, table.unknown)) for word in words) > 0


@cache
def _table() -> Words:
    return load_table("ncclcheck.logs.patterns", "words.toml", Words)
