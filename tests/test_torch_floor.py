"""The versions of torch that the package asks for are those that scripts/weekly runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_oldest_torch_that_may_be_installed_is_the_oldest_that_is_tested() -> None:
    required = re.search(r'"torch>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    tested = re.search(
        r"^versions=\((\d+\.\d+)[\d.]* ", (ROOT / "scripts" / "weekly").read_text(), re.MULTILINE
    )
    assert required
    assert tested
    assert tested[1] == required[1]


def test_every_tested_version_has_a_row_in_the_measurements() -> None:
    listed = re.search(r"^versions=\((.*)\)", (ROOT / "scripts" / "weekly").read_text(), re.MULTILINE)
    assert listed
    page = (ROOT / "docs" / "measurements.md").read_text()
    assert [version for version in listed[1].split() if f"| {version} |" not in page] == []
