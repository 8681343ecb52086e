"""JSON in which no character steers a terminal, and which parses to the same value."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.codec import encode, encode_pretty, encode_readable
from ncclcheck.model.formats.unsafe_letters import is_unsafe, safe_json

# Unicode Bidirectional Algorithm (UAX 9), 2: every character that changes the direction of what follows
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@given(st.text(st.characters(codec="utf-8") | st.sampled_from(BIDI)))
def test_it_parses_to_the_same_value_and_is_plain(text: str) -> None:
    made = safe_json(encode({text: [text]}).decode())
    assert json.loads(made) == msgspec.json.decode(made) == {text: [text]}
    assert not any(map(is_unsafe, made))


def test_every_character_that_steers_a_terminal_is_escaped() -> None:
    letters = [chr(number) for number in range(sys.maxunicode + 1) if not 0xD800 <= number < 0xE000]
    unsafe = [letter for letter in letters if is_unsafe(letter)]
    assert {*BIDI, "\x1b", "\x7f", "\x9b", "\u2028", "\ufeff", "\U000e0001"} <= set(unsafe)
    made = safe_json(encode(unsafe).decode())
    assert made.isascii()
    assert made.isprintable()
    assert json.loads(made) == unsafe


@pytest.mark.parametrize("text", ['{"a":"b"}', '{"日本":"é🙂"}', "[\n 1\n]"])
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert safe_json(text) == text


def test_the_documents_of_the_commands_are_safe() -> None:
    value = {"\u202e\x1b[31m": "\x7f\x9b"}
    for text in (encode_pretty(value), encode_readable(value)):
        assert json.loads(text) == value
        assert text.replace("\n", "").isascii()
        assert text.replace("\n", "").isprintable()
