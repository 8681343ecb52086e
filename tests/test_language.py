"""Names say what they hold: no loop variable, parameter or local is called `one`, `told`, `own` or `way`.

Fields of a record may be: they are names in JSON. All of this holds for the package, the programs of scripts/ and the
modules that all tests share.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import FILES, ROOT, in_each, parsed

EMPTY_NAMES = frozenset({"one", "each", "other", "those"})
# Verbs and pronouns without a subject: `answers_by_host`, not `told`; `path`, not `way`; `joined`, not `met`.
EMPTY_NAMES |= {"told", "untold", "tells", "said", "says", "way", "ways", "whom", "came", "met"}
EMPTY_NAMES |= {"kept", "wanted", "given", "own"}
# Functions and methods are named after what they do or return, too.
EMPTY_FUNCTIONS = EMPTY_NAMES | {"who"}


def bound_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each name that the code binds, with its line: assignments, loops, comprehensions, parameters."""
    fields = set(fields_in(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if node not in fields:
                yield node.id, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            parameters = node.args
            # Python's own name for the second operand of == and its like
            is_comparison = isinstance(node, ast.FunctionDef) and node.name.startswith("__")
            if not is_comparison:
                for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
                    yield parameter.arg, parameter.lineno


def fields_in(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the targets of the fields that classes declare."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (field.target for field in node.body if isinstance(field, ast.AnnAssign))


def empty_names(path: Path) -> list[str]:
    return [f"{name} (line {line})" for name, line in bound_names(parsed(path)) if name in EMPTY_NAMES]


def empty_functions(path: Path) -> list[str]:
    defined = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return [
        f"{node.name} (line {node.lineno})"
        for node in defined
        if node.name.strip("_").lower() in EMPTY_FUNCTIONS
    ]


@in_each(FILES)
def test_a_name_says_what_it_holds(path: Path) -> None:
    empty = [*empty_names(path), *empty_functions(path)]
    assert not empty, f"named after nothing: {', '.join(empty)}"


def test_a_name_in_a_program_or_a_builder_says_what_it_holds() -> None:
    files = [path for path in (ROOT / "scripts").rglob("*") if is_program(path)]
    files += [path for path in (ROOT / "tests").glob("*.py") if not path.name.startswith("test_")]
    empty = {path.name: names for path in files if (names := empty_names(path))}
    assert not empty, f"named after nothing: {empty}"


def is_program(path: Path) -> bool:
    return path.is_file() and (
        path.suffix == ".py"
        or (not path.suffix and path.read_text(encoding="utf-8").startswith("#!/usr/bin/env python3"))
    )
