"""Texts of programs that are not C: what Python raises or logs as an error, help files, and strings of a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_LEVELS = frozenset({"error", "critical", "exception", "fatal"})
_PRINTABLE = re.compile(rb"[\x20-\x7e\n\t]{12,2000}")
_SENTENCE = re.compile(r"[A-Za-z]{3,} [\w'-]{2,}")
_SECTION = re.compile(r"^\[.{1,120}\]$")


def of_python(source: str) -> Iterator[str]:
    """Yield the message of every exception that is raised and of every call that logs an error, with * for values."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = _name(node.exc.func)
            text = _first_text(node.exc)
            if text:
                yield f"{name}: {text}"
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LEVELS
        ):
            text = _first_text(node)
            if text:
                yield text


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "*"


def _first_text(call: ast.Call) -> str:
    text = _text(call.args[0]) if call.args else ""
    text = re.sub(r"%[-\d.]*[sdifxr]|%\(\w+\)[sdfr]|\{[\w!.:]*\}", "*", text)
    return (
        re.sub(r"\*(?:[ ,]*\*)+", "*", re.sub(r"\s+", " ", text)).strip(" *")
        and re.sub(r"\s+", " ", text).strip()
    )


def _text(node: ast.expr) -> str:
    """Return the string of an expression, with * for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "*" for part in node.values)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mod):
            return _text(node.left)
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _text(node.func.value)
    return "*"


def of_help_file(source: str) -> Iterator[str]:
    """Yield the first sentence of every message of an Open MPI or PRRTE help file."""
    lines: list[str] = []
    for line in [*source.splitlines(), "[end]"]:
        if _SECTION.match(line):
            if text := _paragraph(lines):
                yield text
            lines = []
        elif not line.startswith("#"):
            lines.append(line)


def _paragraph(lines: list[str]) -> str:
    body = "\n".join(lines).strip().partition("\n\n")[0]
    return re.sub(r"\s+", " ", re.sub(r"%[-\d.]*l*[sdiux]", "*", body)).strip()


def of_library(data: bytes, words: str) -> Iterator[str]:
    """Yield the strings of a shared library that read like a sentence and have one of the words."""
    pattern = re.compile(words)
    for found in _PRINTABLE.finditer(data):
        for line in found[0].decode("ascii").split("\n"):
            text = re.sub(r"\s+", " ", line).strip()
            if (
                pattern.search(text)
                and _SENTENCE.search(text)
                and not re.search(r"::|[{};]|\(\*\)|<[a-z]", text)
            ):
                yield text
