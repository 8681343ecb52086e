"""`sh -c 'torchrun ...'`: the one command that a shell's words come to, where they come to one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"})

_NAME = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_QUOTED = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*")""")
_PLAIN_VALUE = re.compile(r"[\w@%+=:,./-]*")
_OPERATORS = frozenset("();<>|&")


class _Clever(Exception):  # noqa: N818 (no error: more than is read here)
    """The shell would do more than start one command."""


class ShellRun(Struct, frozen=True):
    """The text after `-c`, and the words of its one command; None: more than one command."""

    text: str
    words: tuple[str, ...] | None

    def names(self, programs: Iterable[str]) -> str | None:
        """Return the first of `programs` that stands in the text as a word of its own, or as the end of a path."""
        program_names = [word.rpartition("/")[2] for word in re.split(r"""[\s;|&<>()`'"]+""", self.text)]
        searched = frozenset(programs)
        return next((word for word in program_names if word in searched), None)


def read_shell(words: Sequence[str], environ: Mapping[str, str]) -> ShellRun | None:
    """Return what a shell that is given `words` starts; None for a script in a file, or its standard input.

    Variables are put in where their values are plain. What the output is led to (`2>&1 | tee log`) changes nothing of
    the command; anything else that a shell can do makes it unknown.
    """
    text = _after_c(words)
    if text is None:
        return None
    try:
        return ShellRun(text, tuple(_command(_filled(text.strip(), environ))))
    except (_Clever, ValueError):  # shlex: no closing quotation
        return ShellRun(text, None)


def _after_c(words: Sequence[str]) -> str | None:
    for position, word in enumerate(words[:-1]):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word):
            rest = [
                following
                for following in words[position + 1 :]
                if not re.fullmatch(r"--|-[A-Za-z]+", following)
            ]
            operands = rest[1:] if "o" in word else rest  # bash -eco pipefail TEXT
            return next(iter(operands), None)
        if not word.startswith("-") and not words[position - 1].endswith("o"):
            return None
    return None


def _filled(text: str, environ: Mapping[str, str]) -> str:
    """Return the text with the values of the variables in it.

    Raises _Clever for any other use of `$`, and for backquotes.
    """

    def value(match: re.Match[str]) -> str:
        found = environ.get(match[1] or match[2], "")
        if not _PLAIN_VALUE.fullmatch(found):
            raise _Clever
        return found

    parts = []
    for part in _QUOTED.split(text):
        literal = part.startswith("'")
        filled = part if literal else _NAME.sub(value, part)
        if not literal and re.search(r"[$`]", filled):
            raise _Clever
        parts.append(filled)
    return "".join(parts)


def _command(text: str) -> list[str]:
    if "\n" in text:
        raise _Clever
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    tokens = list(lexer)
    operators = [position for position, token in enumerate(tokens) if token and _OPERATORS.issuperset(token)]
    if any(not _leads_output(tokens[position]) for position in operators):
        raise _Clever
    words = tokens[: operators[0]] if operators else tokens
    return words[1:] if words[:1] == ["exec"] else words


def _leads_output(operator: str) -> bool:
    return operator in {"|", "|&", ">", ">>", ">&", "&>", "&>>", ">|"}
