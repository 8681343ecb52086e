"""Structs as tables of Markdown: what `scripts/facts_manual` and `scripts/report_manual` make their pages of.

Text comes from the docstrings, annotations and comments of the Structs, so a page cannot say anything else.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing

UNITS = {
    "bytes": "bytes", "kib": "KiB", "mbps": "Mbit/s", "gbps": "Gbit/s", "gt_s": "GT/s", "gb_s": "GB/s",
    "gbit_s": "Gbit/s", "mhz": "MHz", "ms": "ms",
    "us": "µs", "s": "s", "w": "W", "c": "°C",
}  # fmt: skip
PLAIN = {"str": "text", "int": "number", "float": "number", "bool": "true or false", "None": "null",
         "UnsetType": "not there"}  # fmt: skip


def structs(hint: Any) -> list[type[Struct]]:
    """Return the Structs that a type names, outermost first."""
    if isinstance(hint, type) and issubclass(hint, Fact):
        return structs(hint.value_type)  # type: ignore[union-attr]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return [hint]
    return [struct for part in get_args(hint) if part is not Missing for struct in structs(part)]


def all_structs(hint: Any) -> list[type[Struct]]:
    """Those and the Structs of their fields, each once."""
    found: list[type[Struct]] = []
    waiting = structs(hint)
    while waiting:
        struct = waiting.pop(0)
        if struct not in found and struct.__name__ != "Missing":
            found.append(struct)
            waiting = [
                *waiting,
                *(part for hints in get_type_hints(struct).values() for part in structs(hints)),
            ]
    return found


def summary(struct: type[Struct]) -> str:
    """Return the first sentence of a docstring."""
    text = " ".join((struct.__doc__ or "").split())
    return re.split(r"(?<=[.?])\s", text, maxsplit=1)[0]


def table(struct: type[Struct]) -> Iterator[str]:
    """Yield the Struct as a heading, its docstring, and one row per field as it is in the JSON."""
    yield from (
        "",
        f"### {struct.__name__}",
        "",
        " ".join(inspect.cleandoc(struct.__doc__ or "").split()),
        "",
    )
    yield from ("| field | value | unit | notes |", "|---|---|---|---|")
    hints, notes = get_type_hints(struct), _comments(struct)
    for name, encoded in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        cells = (f"`{encoded}`", words(hints[name]), _unit(name), notes.get(name, ""))
        yield f"| {' | '.join(map(cell, cells))} |"


def cell(text: str) -> str:
    """Return the text as it may stand in a row."""
    return text.replace("|", "\\|").replace("\n", " ")


def _unit(name: str) -> str:
    return next((unit for suffix, unit in UNITS.items() if name.endswith(f"_{suffix}")), "")


def words(hint: Any) -> str:
    """Describe a type in words: `list of text, or missing`."""
    if isinstance(hint, type) and issubclass(hint, Fact):
        return f"{words(hint.value_type)}, *or missing*"  # type: ignore[union-attr]
    if Missing in get_args(hint):
        values = [part for part in get_args(hint) if part is not Missing]
        return f"{' or '.join(map(words, values))}, *or missing*"
    if isinstance(hint, type) and issubclass(hint, Struct):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if isinstance(hint, type) and not get_args(hint):
        return PLAIN.get(hint.__name__, hint.__name__).replace("NoneType", "null")
    origin, inner = getattr(hint, "__origin__", None), get_args(hint)
    if origin is tuple:
        return (
            f"list of {words(inner[0])}"
            if inner[-1] is Ellipsis
            else f"list of {len(inner)}: {words(inner[0])}"
        )
    if origin is dict:
        return f"object: {words(inner[0])} to {words(inner[1])}"
    if all(isinstance(word, str) for word in inner):
        return ", ".join(f"`{word}`" for word in inner)
    return " or ".join(words(part) for part in inner)


def _comments(struct: type[Struct]) -> dict[str, str]:
    """Return the comments of each field: above its declaration, beside it or inside it."""
    module = importlib.import_module(struct.__module__)
    source = inspect.getsource(module)
    lines = source.splitlines()
    declared = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    )
    found = {}
    for node in declared.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            inside = lines[node.lineno - 1 : node.end_lineno]
            notes = [*_above(lines, node.lineno - 1), *(line.partition("  # ")[2].strip() for line in inside)]
            found[node.target.id] = " ".join(note for note in notes if note and not note.startswith("fmt:"))
    return found


def _above(lines: list[str], number: int) -> list[str]:
    """Return the lines of the comment that ends above this line."""
    first = number
    while lines[first - 1].lstrip().startswith("# "):
        first -= 1
    return [line.strip().removeprefix("# ") for line in lines[first:number]]
