"""Text of other machines cannot steer a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.report.text.plain import plain, without_commands


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("eth0: 10.0.0.1", "eth0: 10.0.0.1"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("one\ntwo\r", r"one\ntwo\r"),
        ("a\tb", "a b"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202edef\u2028", r"abc\u202edef\u2028"),
        ("\udcff", r"\udcff"),
        ("Größe µs 節点", "Größe µs 節点"),
    ],
)
def test_controls_become_escapes_and_words_stay(text: str, harmless: str) -> None:
    assert plain(text) == harmless


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    result = plain(text)
    assert not {unicodedata.category(letter) for letter in result} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    result.encode()


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("  ::add-mask::x", r"  \x3a:add-mask::x"),
        ("::warning file=a,line=1::x", r"\x3a:warning file=a,line=1::x"),
        ("\u3000::debug::", "\u3000\\x3a:debug::"),
        ("a ##[error]x", r"a \x23#[error]x"),
        ("::ffff:10.0.0.1 answers", "::ffff:10.0.0.1 answers"),
        ("::1", "::1"),
        ("node01 ::error::x", "node01 ::error::x"),
        ("## heading [a]", "## heading [a]"),
    ],
)
def test_what_a_runner_of_github_takes_for_a_command_is_escaped(line: str, harmless: str) -> None:
    assert without_commands(line) == harmless
