"""`ncclcheck checks`: the list, and each manual page."""

from __future__ import annotations

from ncclcheck.checks.registry import every_check
from tests.cli.command_line import ncclcheck, refused


def test_every_check_is_listed_by_code() -> None:
    lines = ncclcheck("checks").out.splitlines()
    assert [line.split()[:2] for line in lines] == [[check.code, check.slug] for check in every_check()]


def test_a_check_is_explained_by_slug_or_code() -> None:
    by_slug, by_code = ncclcheck("checks", "node_silent"), ncclcheck("checks", "nc101")
    assert by_slug.out == by_code.out
    assert by_slug.out.startswith("NC101 node-silent: ")
    assert "## How to fix" in by_slug.out


def test_a_prefix_lists_its_family() -> None:
    lines = ncclcheck("checks", "NC1").out.splitlines()
    assert lines
    assert all(line.startswith("NC1") for line in lines)


def test_a_typo_gets_the_nearest_slug() -> None:
    assert (
        refused(ncclcheck("checks", "node-slient"))
        == "checks 'node-slient': no such check: did you mean 'node-silent'?"
    )


def test_the_manual_of_all_is_one_page() -> None:
    page = ncclcheck("checks", "--format", "md").out
    assert page.startswith("# The checks\n")
    assert "## NC101 node-silent\n" in page
    assert "leave 'node-silent' out" in refused(ncclcheck("checks", "node-silent", "--format", "md"))
