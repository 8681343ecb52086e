"""The manual of all checks, and that the one in docs/ is the present one."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.checks.registry import every_check
from ncclcheck.report.manual import FAMILIES, manual_page

EVERY = every_check()
PAGE = manual_page(EVERY)
DOCUMENT = Path(__file__).parents[2] / "docs" / "checks.md"


def test_every_check_has_a_page_of_its_own_with_its_sections() -> None:
    pages = PAGE.split("\n## NC")[1:]
    assert [page.split("\n")[0].split()[1] for page in pages] == [check.slug for check in EVERY]
    assert all("### How to fix" in page for page in pages)


def test_every_check_is_in_the_contents_once_and_its_link_leads_to_its_heading() -> None:
    for check in EVERY:
        assert PAGE.count(f"](#{check.code.lower()}-{check.slug})") == 1
        assert f"\n## {check.code} {check.slug}\n" in PAGE


def test_every_family_has_a_name() -> None:
    assert {check.code[:3] for check in EVERY} <= set(FAMILIES)


def test_the_page_in_the_documentation_is_the_present_one() -> None:
    assert DOCUMENT.read_text() == PAGE, "run: ncclcheck checks --format md > docs/checks.md"
