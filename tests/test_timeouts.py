"""The durations of ncclcheck: in one file, each explained, used, and the same as the documentation says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncclcheck import timeouts

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ncclcheck"
SOURCE = (PACKAGE / "timeouts.py").read_text(encoding="utf-8")
DURATIONS = {name: value for name, value in vars(timeouts).items() if name.isupper()}
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


SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "timeouts.py"]


def test_no_other_module_has_a_duration_of_its_own() -> None:
    found = []
    for path in SOURCES:
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(OWN_DURATIONS):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [
            f"{name}:{line}: {constant}"
            for constant, line in constants(tree)
            if is_duration(constant) and (name, constant) not in DATA
        ]
        found += [
            f"{name}:{line}: {argument}={value.value!r}"
            for argument, value, line in defaults(tree)
            if argument.endswith("_s")
            and isinstance(value, ast.Constant)
            and value.value not in (0, 0.0, None)
        ]
    assert not found, "move it to ncclcheck/timeouts.py: " + ", ".join(found)


def test_every_duration_is_explained_used_and_above_zero() -> None:
    further = [path for folder in ("tests", "scripts") for path in (ROOT / folder).rglob("*.py")]
    words = Counter(
        word
        for path in (*SOURCES, *further)
        if path != Path(__file__)
        for word in re.findall(r"\b[A-Z_]+_S\b", path.read_text("utf-8"))
    )
    words.update(re.findall(r"\b[A-Z_]+_S\b", SOURCE))
    lines = SOURCE.splitlines()
    for name, line in constants(ast.parse(SOURCE)):
        assert name.endswith("_S"), name
        assert DURATIONS[name] > 0, name
        assert "  # " in lines[line - 1] or lines[line - 2].startswith("# "), f"{name} has no comment"
        assert words[name] > 1, f"{name} is not used"


def test_a_wait_inside_another_is_shorter() -> None:
    for inner, outer in [
        (timeouts.JOIN_TIMEOUT_S, timeouts.PREFLIGHT_TIMEOUT_S),
        (timeouts.PREFLIGHT_TIMEOUT_S, timeouts.BENCH_TIMEOUT_S),
        (timeouts.WORKER_JOIN_S, timeouts.GROUP_JOIN_S),
        (timeouts.PROBE_BLOCK_S, timeouts.PROBE_PATIENT_S),
        (timeouts.FOLDER_HEARTBEAT_S, timeouts.FOLDER_SILENT_S),
        (timeouts.NODE_QUIET_S, timeouts.NODE_LOST_S),
        (timeouts.FACTS_INNER_S, timeouts.FACTS_DEADLINE_S),
        (timeouts.PATH_LIST_S, timeouts.PATH_READ_S),
        (timeouts.PATH_READ_S + timeouts.PATH_HUNG_S, timeouts.PATH_S),
        (timeouts.LINKS_TRANSFERS_S + timeouts.LINKS_PINGS_S, timeouts.LINKS_TOTAL_S),
    ]:
        assert inner < outer


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("docs/preflight.md", f"`--join-timeout` ({timeouts.JOIN_TIMEOUT_S:g} s)"),
        ("docs/preflight.md", f"`--timeout` ({timeouts.PREFLIGHT_TIMEOUT_S:g} s)"),
        ("docs/bench.md", f"`--budget {timeouts.BENCH_BUDGET_S:g}`"),
    ],
)
def test_the_documentation_says_the_same(page: str, text: str) -> None:
    assert text in " ".join((ROOT / page).read_text(encoding="utf-8").split())
