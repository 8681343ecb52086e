"""Text of other machines made harmless: nothing in it can steer a terminal or pretend to be a line of ours."""

from __future__ import annotations

import re

from ncclcheck.model.formats.unsafe_letters import is_unsafe

# What a runner of GitHub Actions takes for a command in what a step prints (actions/runner,
# src/Runner.Common/ActionCommand.cs): `::NAME PROPERTIES::` at the start of a line, after white space, and
# `##[NAME PROPERTIES]` anywhere in it.
_COMMAND_LINE = re.compile(r"^(\s*):(?=:[A-Za-z-]+( .*)?::)")
OLD_COMMAND = "##["


def plain(text: str) -> str:
    r"""`text` on one line, with every control and invisible character written as an escape (`\x1b`, `\u202e`)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(letter) if is_unsafe(letter) else letter for letter in text)


def without_commands(line: str) -> str:
    r"""`line` with an escape where it would be a command of GitHub Actions (`\x3a:error::`)."""
    return _COMMAND_LINE.sub(r"\1\\x3a", line).replace(OLD_COMMAND, r"\x23#[")


def _escaped(letter: str) -> str:
    return " " if letter == "\t" else letter.encode("unicode_escape").decode("ascii")
