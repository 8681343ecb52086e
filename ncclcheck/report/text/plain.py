"""Text of other machines made harmless: nothing in it can steer a terminal or pretend to be a line of ours."""

from __future__ import annotations

import unicodedata

# Cc: ESC and the other controls; Cf: bidi overrides and zero-width joiners; Cs: halves of surrogate pairs, which no
# encoder takes; Zl, Zp: line breaks. What Unicode calls them (DerivedGeneralCategory.txt).
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def plain(text: str) -> str:
    r"""`text` on one line, with every control and invisible character written as an escape (`\x1b`, `\u202e`)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(letter) if unicodedata.category(letter) in _UNSAFE else letter for letter in text)


def _escaped(letter: str) -> str:
    return " " if letter == "\t" else letter.encode("unicode_escape").decode("ascii")
