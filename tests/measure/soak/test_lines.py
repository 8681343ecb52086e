"""The lines of a soak's file."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.measure.soak.lines import line_of, read_lines
from ncclcheck.model.benchmarks.soak import NodeCounts, SoakLine, SoakPair, SoakTail
from tests.soak_builders import BEGAN, PLAN, dropped_lines, soak_block, soak_start


def test_lines_come_back_as_they_were_written() -> None:
    lines = dropped_lines()
    assert list(read_lines(map(line_of, lines))) == lines


def test_a_damaged_line_is_none_and_an_unfinished_one_is_not_there() -> None:
    first, second = (line_of(line) for line in dropped_lines()[:2])
    read = list(read_lines([first, b"{damaged\n", second[:-5]]))
    assert read == [dropped_lines()[0], None]


@pytest.mark.parametrize(
    "changes",
    [
        {"at_s": 1e300}, {"at_s": -1.0}, {"seconds": 1e12}, {"seconds": -1.0}, {"median_us": 0.0}, {"median_us": -5.0},
        {"worst_us": 1e300}, {"wrong_ranks": (-5,)}, {"wrong": -1}, {"number": -1}, {"iterations": -1},
        {"times": {100_000: 1}}, {"times": {1: -1}}, {"pairs": (SoakPair("a", "b", 1e300),)},
        {"pairs": (SoakPair("a", "b", -1.0),)}, {"tails": (SoakTail(1e300, 1, "late", 0.0),)},
        {"tails": (SoakTail(1.0, -1, "late", 0.0),)}, {"nodes": (NodeCounts("a", {"eth0 x": -5}),)},
        {"nodes": (NodeCounts("a", {}, steal=7.0),)},
    ],
)  # fmt: skip
def test_a_block_with_values_that_cannot_be_is_damaged(changes: dict[str, Any]) -> None:
    assert list(read_lines([line_of(replace(soak_block(1), **changes))])) == [None]


@pytest.mark.parametrize(
    "line",
    [
        replace(soak_start(), plan=replace(PLAN, drop=1.0)), replace(soak_start(), at_s=1e300),
        replace(soak_start(), hosts=()), replace(soak_start(), ops=()), replace(soak_start(), size_bytes=0),
    ],
)  # fmt: skip
def test_a_begin_that_cannot_be_is_damaged(line: SoakLine) -> None:
    assert list(read_lines([line_of(line)])) == [None]
    assert list(read_lines([line_of(soak_start(BEGAN))])) == [soak_start(BEGAN)]
