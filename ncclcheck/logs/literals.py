"""Text that a regular expression cannot do without: a quick way to know that it does not match."""

from __future__ import annotations

import re

_GROUP_HEAD = re.compile(r"^\?(?::|P<\w+>)")
LONG = 5  # such a text is rare enough to be content with
SHORTEST = 3  # shorter ones are in nearly every line
_SPECIAL = ".^$"
_QUANTIFIERS = "*?{"
_ESCAPED_LETTERS = "dDwWsSbBAZ"


def required(pattern: str) -> tuple[str, ...]:
    """For each alternative of `pattern` a text, in lower case, that is in all it matches; `()` where one has none.

    Only what stands outside groups and classes counts, so the answer is cautious: no text that is not needed.
    """
    found: list[str] = []
    for alternative in alternatives(pattern):
        longest = max(_runs(alternative), key=len, default="")
        texts = (longest.lower(),) if len(longest) >= LONG else _of_a_group(alternative)
        if not texts and len(longest) >= SHORTEST:
            texts = (longest.lower(),)
        if not texts:
            return ()
        found += texts
    return tuple(found)


def _of_a_group(alternative: str) -> tuple[str, ...]:
    """One text for each alternative of a group that is no option; of several such groups the one with longer texts."""
    best: tuple[str, ...] = ()
    position = 0
    while position < len(alternative):
        letter = alternative[position]
        if letter == "\\":
            position += 2
        elif letter == "[":
            position = _end(alternative, position)
        elif letter == "(":
            end = _end(alternative, position)
            inner = _GROUP_HEAD.sub("", alternative[position + 1 : end - 1], count=1)
            is_needed = alternative[end : end + 1] not in ("?", "*", "{") and not inner.startswith(
                ("?!", "?<", "?=")
            )
            texts = required(inner) if is_needed else ()
            if texts and (not best or min(map(len, texts)) > min(map(len, best))):
                best = texts
            position = end
        else:
            position += 1
    return best


def alternatives(pattern: str) -> list[str]:
    """The pattern at its outermost `|`, which are not in a group or class."""
    parts, start, position = [], 0, 0
    while position < len(pattern):
        letter = pattern[position]
        if letter in "([":
            position = _end(pattern, position)
            continue
        if letter == "\\":
            position += 1
        elif letter == "|":
            parts.append(pattern[start:position])
            start = position + 1
        position += 1
    return [*parts, pattern[start:]]


def _runs(alternative: str) -> list[str]:
    """The texts that stand in the alternative as they are, outside its groups."""
    runs, run, position = [], "", 0
    while position < len(alternative):
        letter = alternative[position]
        if letter in "([":
            runs.append(run)
            run, position = "", _end(alternative, position)
            continue
        if letter in _QUANTIFIERS:
            runs.append(run[:-1])
            run = ""
            position = alternative.find("}", position) + 1 if letter == "{" else position + 1
            continue
        if letter == "\\":
            position += 1
            following = alternative[position : position + 1]
            if following in _ESCAPED_LETTERS or following.isdigit():
                runs.append(run)
                run = ""
            else:
                run += following
        elif letter in _SPECIAL or letter == "+":
            runs.append(run)
            run = ""
        else:
            run += letter
        position += 1
    return [*runs, run]


def _end(pattern: str, start: int) -> int:
    """The place after the group or class that begins at `start`."""
    depth, position, in_class = 0, start, False
    while position < len(pattern):
        letter = pattern[position]
        if letter == "\\":
            position += 1
        elif in_class:
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        position += 1
        if depth == 0 and not in_class:
            return position
    return position
