"""Takes a launcher's options off a command line by the launcher's own table, with argparse's own rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from msgspec import Struct

from ncclcheck.model.errors import UsageError


class Option(Struct, frozen=True):
    """An option of a launcher: its names, and whether it is a flag (`--standalone`) or takes a value (`--nnodes 2`)."""

    names: tuple[str, ...]
    is_flag: bool = False


class Taken(Struct, frozen=True):
    """What stands before the script: values by the option's first name (a flag's is ""), and the script itself."""

    values: dict[str, str]
    script: str
    arguments: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog} would refuse this command line: {message}")


def both_spellings(*names: str) -> tuple[str, ...]:
    """Return `--node-rank` as `--node-rank` and `--node_rank`."""
    return tuple(dict.fromkeys([*names, *(f"--{name[2:].replace('-', '_')}" for name in names if name[2:])]))


def take(
    program: str, options: Iterable[Option], words: Sequence[str], *, abbreviated: bool = True
) -> Taken | None:
    """Return the options before the script, and the script; None where the words only ask for help.

    `words` follow the program's name. An option that the table lacks belongs to a newer launcher: it is skipped
    where it cannot take the next word as its value. Raises UsageError where it could, and where the launcher itself
    would reject the words (an ambiguous abbreviation, a missing value, no script).
    """
    parser = _Parser(prog=program, add_help=False, allow_abbrev=abbreviated)
    parser.add_argument("-h", "--help", action="store_true", dest="help")
    table = list(options)
    for option in table:
        kind: dict[str, Any] = {"action": "store_const", "const": ""} if option.is_flag else {}
        parser.add_argument(*option.names, dest=option.names[0], default=None, **kind)
    parser.add_argument("script", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    found, unknown = parser.parse_known_args(list(words))
    if found.help:
        return None
    _refuse_ambiguous(program, unknown, words)
    if found.script is None:
        raise UsageError(f"{program} would refuse this command line: it names no script to start")
    parsed = vars(found)
    values = {
        option.names[0]: parsed[option.names[0]] for option in table if parsed[option.names[0]] is not None
    }
    return Taken(values, found.script, tuple(found.arguments))


def _refuse_ambiguous(program: str, unknown: Sequence[str], words: Sequence[str]) -> None:
    """Raise UsageError for an unknown option whose value may have been taken for the script."""
    for word in unknown:
        if not word.startswith("-") or "=" in word:
            continue
        following = words[list(words).index(word) + 1 :][:1]
        if following and not following[0].startswith("-"):
            raise UsageError(
                f"{program} {word}: ncclcheck does not know this option, nor whether {following[0]!r} is its value: "
                f"write {word}={following[0]}, or, if it takes none, put another option after it"
            )


def whole_number(program: str, name: str, text: str, least: int = 0) -> int:
    """Return the number behind an option. Raises UsageError where it is none, or less than `least`."""
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"{program} {name} {text!r}: expected a whole number") from None
    if number < least:
        raise UsageError(f"{program} {name} {number}: expected at least {least}")
    return number


def truth(text: str | None) -> bool | None:
    """Return a switch as torch's rendezvous reads it (torch/distributed/elastic/rendezvous/api.py, get_as_bool)."""
    if text is None:
        return None
    return text.lower() in {"1", "true", "t", "yes", "y"}
