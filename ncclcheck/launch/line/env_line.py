"""`env [OPTION]... [NAME=VALUE]... COMMAND`: what it changes before it becomes COMMAND."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.model.errors import UsageError

# coreutils, src/env.c: options with a value, by letter and by name. All others are flags (--block-signal[=SIG] too).
_VALUES = {"u": "--unset", "C": "--chdir", "S": "--split-string", "a": "--argv0"}

Changes = Mapping[str, "str | None"]  # name -> value; None: it is taken away


class EnvRun(Struct, frozen=True):
    """The command of `env`, what it changes in the environment, and the folder that it enters ("": the same)."""

    words: tuple[str, ...]
    changes: dict[str, str | None]
    folder: str = ""


def read_env(words: Sequence[str], environ: Mapping[str, str]) -> EnvRun:
    """Return what `env WORDS` does. Raises UsageError where its quotes do not match (-S)."""
    left = list(words)
    changes: dict[str, str | None] = {}
    folder = ""
    while left and left[0].startswith("-") and left[0] != "--":
        word = left.pop(0)
        if word in ("-", "-i", "--ignore-environment"):
            changes |= dict.fromkeys(environ)
            continue
        for option, value in _parted(word, left):
            if option == "-i":
                changes |= dict.fromkeys(environ)
            elif option == "--unset":
                changes[value] = None
            elif option == "--chdir":
                folder = value
            elif option == "--split-string":
                left[:0] = _split(value)
    if left[:1] == ["--"]:
        left.pop(0)
    while left and "=" in left[0] and not left[0].startswith("="):
        name, _, text = left.pop(0).partition("=")
        changes[name] = text
    return EnvRun(tuple(left), changes, folder)


def applied(environ: Mapping[str, str], changes: Changes) -> dict[str, str]:
    """Return the environment after the changes."""
    return {name: value for name, value in {**environ, **changes}.items() if value is not None}


def _parted(word: str, left: list[str]) -> list[tuple[str, str]]:
    """Return the options in one word (`-iu NAME`), with their values, which are taken off `left` where they follow."""
    if word.startswith("--"):
        name, equals_sign, value = word.partition("=")
        if not equals_sign and name in _VALUES.values():
            value = left.pop(0) if left else ""
        return [(name, value)]
    found: list[tuple[str, str]] = []
    for position, letter in enumerate(word[1:], 2):
        if letter in _VALUES:
            value = word[position:] or (left.pop(0) if left else "")
            return [*found, (_VALUES[letter], value)]
        found.append((f"-{letter}", ""))
    return found


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"env -S {text!r}: {str(error).lower()}") from error
