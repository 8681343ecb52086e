"""Names say what they hold: no loop variable, parameter or local is called `one`, `each` or `other`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import FILES, in_each, parsed

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


@in_each(FILES)
def test_a_name_says_what_it_holds(path: Path) -> None:
    empty = [f"{name} (line {line})" for name, line in bound_names(parsed(path)) if name in EMPTY_NAMES]
    assert not empty, f"named after nothing: {', '.join(empty)}"
