"""The programs of scripts/ are checked as the package is, though their names have no suffix."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def programs(first_line: str) -> set[str]:
    files = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and not path.suffix]
    return {f"scripts/{path.name}" for path in files if path.read_text().startswith(first_line)}


def listed(option: str) -> set[str]:
    listing = re.search(rf"^{option} = \[(.*?)\]$", CONFIGURATION, re.MULTILINE | re.DOTALL)
    assert listing
    return set(re.findall(r'"(scripts/\w+)"', listing[1]))


def test_mypy_reads_every_program_in_python() -> None:
    assert listed("files") == programs("#!/usr/bin/env python3")


def test_ruff_leaves_out_the_programs_in_bash_alone() -> None:
    assert listed("extend-exclude") == programs("#!/usr/bin/env bash")
