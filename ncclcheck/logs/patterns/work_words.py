"""Whether a line sounds like a job at work or one that ended well, by its words. Their weights are learnt.

`scripts/learn_words` reads the labelled logs of the tests and the tables of messages, and writes work_words.toml. The
weights are not used for lines that a table knows; they are for the last lines of programs that no table covers.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from ncclcheck.model.formats.tables import load_table

# each sign of a script without spaces; a word, or what stands between two capitals of one: `saveCheckpoint`, `NCCL`
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[A-Z]{2,40}(?![a-z])|[^\W\d_][^\W\d_A-Z]{1,40}(?:'[a-z]{1,2}\b)?"
)
# what a logger writes before a message says nothing of it: its level, and where in the source it stands
_OF_LOGGER = re.compile(
    r"[\w./-]{1,200}\.(?:py|cc|cpp|cu|go|rs)\b(?::\d{1,6})?|\b(?:INFO|DEBUG|WARN(?:ING)?|NOTICE|[Ll]evel)\b"
)
_MOST_WORDS = 40
_UNIT = re.compile(r"[^A-Za-z]*\d")
_TROUBLE = re.compile(
    r"^\s*File \"|\+0x[0-9a-f]|goroutine|: +\|\s*$|"  # of a stack, and a bar that has not begun
    r"wait|\bnot\b|n't\b|unavailable|\bgone\b|\blost|\bgiv|quit|silent|fail|error|exit|code|kill|dead|left|no space|"
    r"abnormal|exceed|limit|stop(?!ping)|cancel|heartbeat|\bcores?\b|trace|preempt|quota|diverg|throttl|retr(?:y|ies)|"
    r"slow|since|\b5\d\d\b|restart|reload|remov|reclaim|\bnan\b|overflow|skipp|stopping (?:all|the) |requeue|"
    r"broke|\bbad\b|wrong|frozen|offline|\bidle|refus|crash|corrupt|damag|\bhangs?\b|\bhung|panic|missing|collaps|useless|"
    r"truncat|fault|drift|overload|inconsisten|mismatch|prematur|interrupt|vanish|alarm|signal|SIG[A-Z]{3}|\bfire\b|"
    r"[:=] ?(?:False|None)\b|\bOOM\b|out of|\binf\b|ended by|"
    r"status[ =:]{1,2}[1-9]|\brc ?= ?-?[1-9]|return(?:s|ed)? -?[1-9]",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b(?P<done>\d{1,6}) ?(?:of|/|->) ?(?P<all>\d{1,6})\b")
_FEW = 3
_SURELY = 1.0  # the sum of the weights, at least: usual words of trouble stay below, few of work do
_KNOWN = 0.5  # of the words of a line, at least


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of a word that nobody knows, of those heard from jobs at work, and of those heard elsewhere only.

    A weight is the logarithm of how much likelier the word is at work than in trouble.
    """

    unknown: float
    work: dict[str, float]
    elsewhere: dict[str, float]


def words_of(text: str) -> frozenset[str]:
    """Return the words of a line's message, without digits, in small letters."""
    return frozenset(word.lower() for word in _WORD.findall(_OF_LOGGER.sub(" ", text))[:_MOST_WORDS])


def sounds_like_work(text: str) -> bool:
    """Return True if most words of the line are those of jobs at work, and none is one of trouble."""
    return is_of_work(text, _table())


def is_foreign(text: str) -> bool:
    """Return True if the line has words, and most of them are of no job at work that was ever read."""
    words = words_of(text)
    return len(words) >= _FEW and sum(word in _table().work for word in words) < _KNOWN * len(words)


def is_of_work(text: str, table: Words) -> bool:
    """Return True if the line sounds like work by these weights. A single word after a number is its unit."""
    if _TROUBLE.search(text) or any(match["done"] != match["all"] for match in _COUNT.finditer(text)):
        return False
    words = words_of(text)
    heard = [word for word in words if word in table.work]
    if len(heard) < max(_KNOWN * len(words), 1) or (len(heard) == 1 and _UNIT.match(text)):
        return False
    return sum(table.work.get(word, table.elsewhere.get(word, table.unknown)) for word in words) > _SURELY


@cache
def _table() -> Words:
    return load_table("ncclcheck.logs.patterns", "work_words.toml", Words)
