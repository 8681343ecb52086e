"""The manual of all checks as one Markdown page, from the docstrings that `ncclcheck checks SLUG` prints."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

from ncclcheck.checks.registry import Check

FAMILIES = {
    "NC1": "Launch",
    "NC2": "Network",
    "NC3": "RDMA",
    "NC4": "GPU and topology",
    "NC5": "Software and code",
    "NC6": "Environment",
    "NC7": "Host: limits, paths, clock",
    "NC8": "Benchmark",
    "NC9": "Logs (`explain`)",
}


def manual_page(checks: Iterable[Check]) -> str:
    """Markdown: a table of contents by family, then the manual page of each check under its code and slug."""
    every = list(checks)
    return "\n".join([*_contents(every), *_pages(every)]).rstrip() + "\n"


def _contents(checks: list[Check]) -> Iterator[str]:
    yield "# The checks"
    yield ""
    yield "Made from the docstrings by `ncclcheck checks --format md`. `ncclcheck checks SLUG` prints one of them."
    for prefix, family in FAMILIES.items():
        members = [check for check in checks if check.code.startswith(prefix)]
        if members:
            yield from ("", f"## {family}", "", "| code | check | what it finds |", "|---|---|---|")
        for member in members:
            title = member.title.replace("|", "\\|")
            yield f"| {member.code} | [{member.slug}](#{_anchor(member)}) | {title} |"


def _pages(checks: list[Check]) -> Iterator[str]:
    for check in checks:
        yield from ("", f"## {check.code} {check.slug}", "", f"**{check.title}**", "")
        yield inspect.cleandoc(check.manual).replace("\n## ", "\n### ")


def _anchor(check: Check) -> str:
    """GitHub's anchor of the heading of a check."""
    return f"{check.code} {check.slug}".lower().replace(" ", "-")
