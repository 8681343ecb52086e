"""The line of every key of a TOML text, which Python's own parser does not tell."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path: TypeAlias = tuple[str | int, ...]  # keys, and the number of an element of an array
_MULTILINE = ('"""', "'''")
# A string as far as it is on one line, a comment, a bracket or comma, and anything else (TOML 1.0, "String").
_TOKEN = re.compile(r"""\"""|'''|"(?:[^"\\]|\\.)*"|'[^']*'|\#.*|[\[\]{},]|[^\s"'\#\[\]{},]+""", re.VERBOSE)
# The rest of a string of several lines; up to two quotes before its end belong to the text.
_END = {
    '"""': re.compile(r'(?:[^"\\]|\\.|\\$|"(?!""))*"{3,5}'),
    "'''": re.compile(r"(?:[^']|'(?!''))*'{3,5}"),
}


class _Statement(Struct, frozen=True):
    """Lines that make sense by themselves, and the line of each element of an array that they hold."""

    first: int
    lines: tuple[str, ...]
    elements: tuple[int, ...]


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, from 1, on which each table, key and element of an array begins. `text` must be valid TOML.

    Every statement of TOML ends at the end of a line and is a document by itself, which the parser then reads. The time
    it takes grows as the text does.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for statement in _statements(text.replace("\r\n", "\n").split("\n")):
        content = tomllib.loads("\n".join(statement.lines))
        if not statement.lines[0].lstrip().startswith("["):
            for path, value in _leaves(content, table):
                _add(found, table, path, statement.first)
                for element, line in _elements(value, path, statement):
                    found.setdefault(element, line)
            continue
        table = _header(content)
        if statement.lines[0].lstrip().startswith("[["):
            number = counts.get(table, 0)
            counts[table] = number + 1
            table = (*table, number)
        _add(found, (), table, statement.first)
    return found


def _add(found: dict[Path, int], above: Path, path: Path, line: int) -> None:
    """Add the line, and those of the tables that a dotted key makes on the way."""
    for length in range(len(above) + 1, len(path) + 1):
        found.setdefault(path[:length], line)


def _statements(lines: list[str]) -> Iterator[_Statement]:
    scan = _Scan()
    begun = 0
    for number, line in enumerate(lines):
        scan.read(line, number + 1)
        if scan.is_open:
            continue
        if not scan.is_blank:
            yield _Statement(begun + 1, tuple(lines[begun : number + 1]), tuple(scan.elements))
        begun, scan = number + 1, _Scan()


class _Scan:
    """How far a statement has been read. State: what is open, and where elements of its array have begun."""

    def __init__(self) -> None:
        self.elements: list[int] = []
        self.is_blank = True
        self._string = ""  # what ends it, while one of several lines is open
        self._depth = 0
        self._begins = False  # what comes next in the array is a new element

    @property
    def is_open(self) -> bool:
        """True if the statement goes on in the next line."""
        return bool(self._string) or self._depth > 0

    def read(self, line: str, number: int) -> None:
        """Read one more line."""
        at = 0
        while at < len(line):
            if self._string:
                end = _END[self._string].match(line, at)
                if end is None:
                    return
                at, self._string = end.end(), ""
                continue
            token = _TOKEN.search(line, at)
            if token is None:
                return
            at = token.end()
            self._take(token[0], number)

    def _take(self, word: str, number: int) -> None:
        if word.startswith("#"):
            return
        self.is_blank = False
        if word in ("]", "}"):
            self._depth -= 1
            return
        if self._depth == 1 and word == ",":
            self._begins = True
            return
        if self._depth == 1 and self._begins:
            self.elements.append(number)
            self._begins = False
        if word in ("[", "{"):
            self._begins = self._depth == 0
            self._depth += 1
        elif word in _MULTILINE:
            self._string = word


def _header(content: Mapping[str, Any]) -> Path:
    """Return the table that a header alone opens: `[a.b]` is read as {a: {b: {}}}, `[[a]]` as {a: [{}]}."""
    path: Path = ()
    while isinstance(content, Mapping) and content:
        ((key, content),) = content.items()
        path = (*path, key)
    return path


def _leaves(content: Any, above: Path) -> Iterator[tuple[Path, Any]]:
    """Yield every key below, also those of inline tables."""
    for key, value in content.items():
        yield (*above, key), value
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))


def _elements(value: Any, path: Path, statement: _Statement) -> Iterator[tuple[Path, int]]:
    """Yield the line of each element.

    Of an array in an inline table, which is no statement's own, that of the statement.
    """
    if not isinstance(value, list):
        return
    elements = statement.elements if len(statement.elements) == len(value) else ()
    for index, element in enumerate(value):
        line = elements[index] if elements else statement.first
        yield (*path, index), line
        if isinstance(element, Mapping):
            yield from ((below, line) for below, _ in _leaves(element, (*path, index)))
