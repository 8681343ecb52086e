"""Lines drawn: wrapped between words or not at all, coloured or not, and never interpreted."""

from __future__ import annotations

from ncclcheck.report.text.page import BLANK, Span, draw, line

LONG = "the quick brown fox jumps over /a/path/that/is/longer/than/the/whole/line/and/stays/whole today"


def test_without_a_width_a_line_stays_one_line() -> None:
    assert draw([line(LONG * 3)], width=None, color=False) == LONG * 3 + "\n"


def test_with_a_width_lines_break_between_words_only() -> None:
    lines = draw([line(LONG, indent=2)], width=30, color=False).splitlines()
    assert " ".join(part.strip() for part in lines) == LONG
    assert all(part.startswith("  ") for part in lines)
    assert [part for part in lines if len(part) > 30] == [
        "  /a/path/that/is/longer/than/the/whole/line/and/stays/whole"
    ]


def test_a_line_to_be_copied_is_never_broken() -> None:
    assert draw([line(LONG, wrap=False)], width=30, color=False) == LONG + "\n"


def test_colours_come_only_when_wanted() -> None:
    page = [line(Span("error", "bold red"), " x")]
    assert draw(page, width=None, color=False) == "error x\n"
    assert draw(page, width=None, color=True) == "\x1b[1;31merror\x1b[0m x\n"


def test_markup_emoji_and_escapes_in_data_are_text() -> None:
    data = "[bold]x[/bold] :warning: http://a [/nonsense] \x1b[31m"
    assert draw([line(data)], width=None, color=True) == data.replace("\x1b", "\\x1b") + "\n"


def test_no_line_is_a_command_of_github_actions_wrapped_or_not() -> None:
    table_row = line(Span("::error::x", "bold"), " slow ##[error]y", indent=2)
    for width, color in ((None, False), (80, True)):
        assert draw([table_row], width=width, color=color) == "  \\x3a:error::x slow \\x23#[error]y\n"
    assert draw([line("x" * 20, " ::error::x")], width=20, color=False).splitlines()[1] == r"\x3a:error::x"


def test_a_blank_line_is_empty() -> None:
    assert draw([BLANK, line("", indent=4)], width=40, color=False) == "\n\n"
