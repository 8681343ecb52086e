"""What counts as a duration in the source, for the tests that keep all of them in one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Units and rates are data, and so is the largest number that a format takes.
UNITS = frozenset({"_MINUTE_S", "_HOUR_S", "_DAY_S"})
RATES = ("_PER_S", "_GB_S", "_GT_S")
DATA = frozenset({("report/junit.py", "_LONGEST_S")})
OWN_DURATIONS = ("logs/",)  # how long a log is silent, and how far its clocks differ


def constants(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield every module-level constant with its line."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id, node.lineno


def defaults(tree: ast.Module) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield every argument and field that has a default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            positional = (*node.args.posonlyargs, *node.args.args)
            pairs = [*zip(reversed(positional), reversed(node.args.defaults), strict=False)]
            keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            pairs += [(argument, value) for argument, value in keywords if value is not None]
            yield from ((argument.arg, value, node.lineno) for argument, value in pairs)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value, node.lineno


def is_duration(constant: str) -> bool:
    """Return whether the name of a constant is that of a duration."""
    return constant.endswith("_S") and constant not in UNITS and not constant.endswith(RATES)
