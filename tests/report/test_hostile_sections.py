"""Every section shows what other machines call themselves as it is: nothing in it is a command, a link or a tag."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import fields, replace

from ncclcheck.model.report import Report
from ncclcheck.report.formats import Format, rendered
from tests.report.junit_rules import broken_rules
from tests.report.whole_report import LOG, whole_report

HOSTILE = "::error::##[add-mask]x\r\n::error::x\n# h\n```\n| a |[a](http://x.example)<script>@me \x1b[2J``````\u202e"
# What is chosen from a list, or read again to draw the section, is no free text.
_OURS = frozenset(
    {"op", "ops", "dtype", "backend", "code", "slug", "created", "outcome", "source", "counters"}
)


def hostile(value: Any, kind: Any = None) -> Any:
    """Return the same with hostile text before each free text."""
    if isinstance(value, msgspec.Struct):
        changed = {
            field.name: hostile(getattr(value, field.name), field.type)
            for field in fields(type(value))
            if field.name not in _OURS
        }
        return replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(hostile(part, kind) for part in value)
    if isinstance(value, dict):
        return {hostile(key, kind): hostile(part, kind) for key, part in value.items()}
    is_free = isinstance(value, str) and "str" in re.findall(
        r"\w+", getattr(kind, "__name__", "") + str(kind)
    )
    return f"{HOSTILE}{value}" if is_free else value


def hostile_reports() -> tuple[Report, Report]:
    """Return the whole report, and the one that `explain` makes."""
    made: Report = hostile(whole_report())
    return made, replace(made, log=hostile(LOG))


@pytest.mark.parametrize("format_", ["text", "md", "github"])
def test_no_line_is_a_command_of_github_and_no_character_steers_a_terminal(format_: Format) -> None:
    for made in hostile_reports():
        text = rendered(made, format_, 1)
        assert not set("\r\x1b\u202e") & set(text)
        ours = r"::(?:error|warning|notice) title=[^\n:,]*::"
        assert format_ == "github" or "##[" not in text
        begun = [line for line in text.splitlines() if re.match(r"\s*::", line)]
        assert [line for line in begun if format_ != "github" or not re.match(ours, line)] == []


def test_markdown_has_no_link_no_tag_and_no_heading_of_theirs() -> None:
    for made in hostile_reports():
        tokens = MarkdownIt("commonmark").enable("table").parse(rendered(made, "md"))
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                assert tokens[at + 1].content != "h"
            if token.type == "html_block":
                assert re.fullmatch(r"(</?details>|<summary>[\w, ]*</summary>|\s)*", token.content)
            for child in token.children or ():
                assert child.type not in ("link_open", "image"), child
                assert child.type != "html_inline" or child.content == "<!-- -->"


def test_html_and_xml_have_none_of_their_tags() -> None:
    for made in hostile_reports():
        assert "<script>@me" not in rendered(made, "html").partition('id="page-data"')[0]
        assert broken_rules(rendered(made, "junit")) == []
