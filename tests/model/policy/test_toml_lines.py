"""The line of every key of a TOML text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.policy.toml_lines import lines_of

TEXT = '''# a comment
nodes = 4

require = [
  "a",   # [not a table]
  "b", {check = "c"},
  {check = "d", until = 2026-12-31}
]
versions.torch = "1"
note = """
[versions]
"""
[environment] # tables
A = true
"B.C" = ["x",
  "y"]
[profile."a b".gpu]
model = "z"
[[list]]
a = 1
[[list]]
a = 2
[floors]
deep.er = [
 1,
 2]
x = {y = {z = 1}}'''

EXPECTED = {
    ("nodes",): 2,
    ("require",): 4,
    ("require", 0): 5,
    ("require", 1): 6,
    ("require", 2, "check"): 6,
    ("require", 3): 7,
    ("require", 3, "until"): 7,
    ("versions",): 9,
    ("versions", "torch"): 9,
    ("note",): 10,
    ("environment",): 13,
    ("environment", "A"): 14,
    ("environment", "B.C"): 15,
    ("environment", "B.C", 0): 15,
    ("environment", "B.C", 1): 16,
    ("profile", "a b"): 17,
    ("profile", "a b", "gpu", "model"): 18,
    ("list", 0, "a"): 20,
    ("list", 1, "a"): 22,
    ("floors", "deep", "er", 0): 25,
    ("floors", "deep", "er", 1): 26,
    ("floors", "x", "y", "z"): 27,
}


def test_every_key_has_the_line_on_which_it_is_written() -> None:
    found = lines_of(TEXT)
    assert {path: found.get(path) for path in EXPECTED} == EXPECTED


def test_the_line_ends_of_windows_do_not_move_a_line() -> None:
    assert lines_of(TEXT.replace("\n", "\r\n")) == lines_of(TEXT)


@pytest.mark.parametrize(
    "value",
    [
        '"""\n] # \\""" [\n"""""',
        "'''\n'' [ # \n''''",
        "'[' # [",
        '"\\\\" # "[',
        "[ # [\n[1,\n2], # ]\n]",
        "{a = [\n'}'], b = \"{\"}",
        '[{a = """\n,[\n"""}]',
    ],
)
def test_what_looks_like_an_end_inside_of_a_value_is_none(value: str) -> None:
    found = lines_of(f"first = {value}\nsecond = 1")
    assert (found["first",], found["second",]) == (1, value.count("\n") + 2)


def test_a_long_list_takes_no_longer_than_its_length() -> None:
    began = time.monotonic()
    found = lines_of("ignore = [\n" + '{check = "a"},\n' * 20_000 + "]")
    assert found["ignore", 19_999, "check"] == 20_001
    assert time.monotonic() - began < 10


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12))
def test_keys_keep_their_lines_among_blank_lines_and_arrays(parts: list[tuple[int, bool]]) -> None:
    lines: list[str] = []
    expected: dict[tuple[str | int, ...], int] = {}
    for number, (blanks, is_array) in enumerate(parts):
        lines += ["# [x]"] * blanks
        expected[f"k{number}",] = len(lines) + 1
        if is_array:
            lines += [f"k{number} = [", "  1,", "  2", "]"]
            expected[f"k{number}", 1] = len(lines) - 1
        else:
            lines.append(f"k{number} = {number}")
    found = lines_of("\n".join(lines))
    assert {path: found[path] for path in expected} == expected
