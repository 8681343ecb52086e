"""Text of other machines made harmless: nothing in it can steer a terminal or pretend to be a line of ours."""

from __future__ import annotations

from ncclcheck.model.formats.unsafe_letters import is_unsafe


def plain(text: str) -> str:
    r"""`text` on one line, with every control and invisible character written as an escape (`\x1b`, `\u202e`)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(letter) if is_unsafe(letter) else letter for letter in text)


def _escaped(letter: str) -> str:
    return " " if letter == "\t" else letter.encode("unicode_escape").decode("ascii")
