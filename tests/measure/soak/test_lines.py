"""The lines of a soak's file."""

from __future__ import annotations

from ncclcheck.measure.soak.lines import line_of, read_lines
from tests.soak_builders import dropped_lines


def test_lines_come_back_as_they_were_written() -> None:
    lines = dropped_lines()
    assert list(read_lines(map(line_of, lines))) == lines


def test_a_damaged_line_is_none_and_an_unfinished_one_is_not_there() -> None:
    first, second = (line_of(line) for line in dropped_lines()[:2])
    read = list(read_lines([first, b"{damaged\n", second[:-5]]))
    assert read == [dropped_lines()[0], None]
