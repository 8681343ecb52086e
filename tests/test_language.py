"""Names say what they hold: no loop variable, parameter or local is called `one`, `each` or `other`.

That holds for the package, the programs of scripts/ and the modules that all tests share.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import FILES, ROOT, in_each, parsed

EMPTY_NAMES = frozenset({"one", "each", "other", "those"})


def bound_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each name that the code binds, with its line: assignments, loops, comprehensions, parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            parameters = node.args
            # Python's own name for the second operand of == and its like
            is_comparison = isinstance(node, ast.FunctionDef) and node.name.startswith("__")
            if not is_comparison:
                for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
                    yield parameter.arg, parameter.lineno


def empty_names(path: Path) -> list[str]:
    return [f"{name} (line {line})" for name, line in bound_names(parsed(path)) if name in EMPTY_NAMES]


@in_each(FILES)
def test_a_name_says_what_it_holds(path: Path) -> None:
    empty = empty_names(path)
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
