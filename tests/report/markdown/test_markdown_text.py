"""Text in Markdown means exactly its characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ncclcheck.report.markdown.markdown_text import block, code, folded, md, paragraph, table
from ncclcheck.report.text.plain import plain, without_commands
from tests.report.hostile import TEXT

PARSER = MarkdownIt("commonmark").enable("table")


def shown(tokens: list[Token]) -> str:
    return "".join(
        child.content for token in tokens for child in token.children or () if child.type != "html_inline"
    )


@given(TEXT)
def test_a_paragraph_shows_its_text(text: str) -> None:
    tokens = PARSER.parse(paragraph(text))
    assert shown(tokens).strip() == plain(text).strip()
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}


@given(TEXT, TEXT)
def test_a_cell_shows_its_text_and_no_text_ends_it(text: str, other: str) -> None:
    tokens = PARSER.parse(table(["a", "b"], [[md(text), code(other)]]))
    cells = [tokens[at + 1] for at, token in enumerate(tokens) if token.type == "td_open"]
    assert [shown([cell]).strip() for cell in cells] == [plain(text).strip(), plain(other).strip()]


@given(TEXT)
def test_a_block_holds_its_lines_whatever_is_in_them(text: str) -> None:
    (token,) = PARSER.parse(block([text, "```", text]))
    assert token.type == "fence"
    assert token.content.splitlines() == [without_commands(plain(text)), "```", without_commands(plain(text))]


@pytest.mark.parametrize("text", ["@user", "see http://x.example", "www.x.example", "a@b.example"])
def test_nobody_is_called_and_nothing_linked(text: str) -> None:
    assert "<!-- -->" in md(text)


def test_names_stay_readable() -> None:
    assert md("NCCL_SOCKET_IFNAME on node-01 (eth0)") == "NCCL_SOCKET_IFNAME on node-01 (eth0)"
    assert code("a`b") == "``a`b``"
    assert code("a|b") == "a&#124;b"


def test_folded_content_is_markdown_of_its_own() -> None:
    assert PARSER.parse(folded("two", "*x*"))[0].type == "html_block"
    assert "<summary>two</summary>\n\n*x*\n\n</details>" in folded("two", "*x*")


def test_no_line_of_it_is_a_command_of_github_actions() -> None:
    assert paragraph("::error::x") == r"\::error::x"
    assert code("##[error]x") == r"##\[error\]x"
    assert (
        block(["::error::x", "  ::stop-commands::x"])
        == "```sh\n\\x3a:error::x\n  \\x3a:stop-commands::x\n```\n"
    )
