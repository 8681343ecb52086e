"""Texts in calls of C and C++: the printf format of a macro, or all strings of a call that streams its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

SUFFIXES = re.compile(r"\.(?:c|cc|cpp|cu|cuh|h|hpp)$")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_FORMAT = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXcspfeEgGm]?")
_LONGEST_CALL = 4000


def texts(source: str, macro: str, *, all_arguments: bool = False) -> Iterator[str]:
    """Yield the text of every call of the macro, with * for what it fills in.

    The text is the first argument, or with `all_arguments` all strings of the call.
    """
    source = source.replace("\\\n", "")  # a line that goes on in the next
    for call in re.finditer(rf"\b(?:{macro})\s*\(", source):
        found = _argument(source, call.end(), all_arguments)
        if found:
            yield found


def streams(source: str, macro: str) -> Iterator[str]:
    """Yield the text of every `MACRO << "..." << value;`, with * for what it fills in."""
    for call in re.finditer(rf"\b(?:{macro})", source):
        parts, position = [], call.end()
        while position < len(source) and source[position] != ";" and position - call.end() < _LONGEST_CALL:
            if source[position] == '"' and (string := _STRING.match(source, position)):
                parts.append(string[1])
                position = string.end()
            elif word := _WORD.match(source, position):
                parts.append("%s")
                position = word.end()
            else:
                position += 1
        if found := plain("".join(parts)):
            yield found


def _argument(source: str, start: int, all_arguments: bool) -> str:
    """Join the strings of the argument; names of formats (PRIu64) are part of the format before them."""
    position, depth, parts = start, 1, []
    while position < len(source) and depth and position - start < _LONGEST_CALL:
        letter = source[position]
        if letter == '"' and (string := _STRING.match(source, position)):
            parts.append(string[1])
            position = string.end()
            continue
        if letter == "," and depth == 1 and not all_arguments:
            break
        if word := _WORD.match(source, position):
            if depth == 1 and not word[0].startswith("PRI"):
                parts.append("%s")
            position = word.end()
            continue
        depth += {"(": 1, ")": -1}.get(letter, 0)
        position += 1
    return plain("".join(parts))


def plain(text: str) -> str:
    """Return a printf format with * for what it fills in, on one line; empty where nothing else is in it."""
    if text.replace("%s", "") == "":
        return ""
    text = _FORMAT.sub("*", text.replace("%%", "\0")).replace("\0", "%")
    for escaped, meant in (("\\n", " "), ("\\t", " "), ('\\"', '"'), ("\\'", "'")):
        text = text.replace(escaped, meant)
    return re.sub(r"\*(?:[ ,]*\*)+", "*", re.sub(r"\s+", " ", text)).strip()
