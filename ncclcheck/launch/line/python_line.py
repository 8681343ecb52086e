"""`python [options] script.py` or `python -m module`: what a Python interpreter is told to run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_NAME = re.compile(r"(?:python|pypy)\d*(?:\.\d+)?t?")
_WITH_VALUE = ("W", "X", "-check-hash-based-pycs")  # python --help: the others take none


class PythonRun(Struct, frozen=True):
    """A script, a module (`-m`), or neither (`-c`, standard input); and the words after it."""

    script: str | None = None
    module: str | None = None
    rest: tuple[str, ...] = ()


def is_python(program: str) -> bool:
    """Return True for `python`, `python3.11`, `/usr/bin/pypy3`."""
    return _NAME.fullmatch(program.rpartition("/")[2]) is not None


def read_python(words: Sequence[str]) -> PythonRun:
    """Return what the interpreter runs when it is given `words` (CPython, Python/initconfig.c and getopt.c)."""
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            break
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            position += 2 if word[1:] in _WITH_VALUE else 1
            continue
        letters = word[1:]
        taking = next((index for index, letter in enumerate(letters) if letter in "cmWX"), None)
        if taking is None:
            position += 1
            continue
        value = letters[taking + 1 :] or next(iter(words[position + 1 : position + 2]), "")
        following = position + (1 if letters[taking + 1 :] else 2)
        if letters[taking] == "m":
            return PythonRun(module=value, rest=tuple(words[following:]))
        if letters[taking] == "c":
            return PythonRun(rest=tuple(words[following:]))
        position = following
    if position < len(words) and words[position] != "-":
        return PythonRun(script=words[position], rest=tuple(words[position + 1 :]))
    return PythonRun()
