"""The durations of ncclcheck: in one file, each explained, used, and the same as the documentation says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from ncclcheck import timeouts
from tests.durations import constants

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ncclcheck"
SOURCE = (PACKAGE / "timeouts.py").read_text(encoding="utf-8")
DURATIONS = {name: value for name, value in vars(timeouts).items() if name.isupper()}


SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "timeouts.py"]


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
