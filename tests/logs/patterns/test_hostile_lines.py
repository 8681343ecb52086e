"""No pattern takes more than linear time on a line made to be hard: twice the length takes about twice as long."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from ncclcheck.logs.lines import loggers, prefix
from ncclcheck.logs.messages.defects import defects
from ncclcheck.logs.readers.glance import PATTERNS

LONGEST = 4096  # of a line that is looked at (ncclcheck.logs.collect.LONGEST_TEXT)
FASTEST_S, TOO_LONG_S = (
    0.002,
    0.25,
)  # below, a clock measures noise; above, a log of such lines would take for ever
GROWTH = 3.2  # of twice the length: linear is 2, quadratic 4
UNITS = (
    "a",
    "A.",
    " ",
    "0",
    "(",
    "[",
    "1.",
    "Error",
    "rank 1 ",
    "failed to ",
    "connect to ",
    "NCCL WARN ",
    "timeout WorkNCCL(",
    "a_b.",
    "x: ",
    "::ffff:1.1.1.1 ",
    "no such file ",
    "error, ",
    "cuda ",
    "-1 ",
)
SEARCHED = (*PATTERNS, *(defect.symptom for defect in defects()))
MATCHED = (  # at the start of a line only
    *(pattern.pattern for pattern in loggers._LOGGERS),
    *(
        value.pattern
        for value in vars(prefix).values()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    ),
)
Look = Callable[[str], object]


def seconds(look: Look, line: str) -> float:
    began = time.process_time()
    look(line)
    return time.process_time() - began


def is_super_linear(look: Look, unit: str) -> bool:
    long = (unit * LONGEST)[:LONGEST]
    if seconds(look, long) < FASTEST_S:
        return False
    once = min(seconds(look, long[: LONGEST // 2]) for _ in range(3))
    twice = min(seconds(look, long) for _ in range(3))
    return twice > TOO_LONG_S or (twice > 10 * FASTEST_S and twice > GROWTH * once)


@pytest.mark.parametrize("unit", UNITS)
def test_no_pattern_takes_super_linear_time(unit: str) -> None:
    looks: list[tuple[str, Look]] = [(text, re.compile(text, re.IGNORECASE).search) for text in SEARCHED]
    looks += [(text, re.compile(text, re.IGNORECASE).match) for text in MATCHED]
    assert [text for text, look in looks if is_super_linear(look, unit)] == []
