"""The table of how programs say that they ended well, against lines that say so and lines that do not."""

from __future__ import annotations

import re
from pathlib import Path

import tomli

from ncclcheck.logs.patterns.endings import endings, is_result

_LINES = tomli.loads(Path(__file__).with_name("endings.toml").read_text())["ending"]
_ENDS = frozenset({"finished", "ready"})


def test_every_ending_has_lines_that_show_it() -> None:
    assert [ending.pattern for ending in endings()] == [lines["pattern"] for lines in _LINES]
    assert all(lines["is"] for lines in _LINES)


def test_each_pattern_finds_its_lines_and_no_other() -> None:
    wrong = []
    for ending, lines in zip(endings(), _LINES, strict=True):
        pattern = re.compile(ending.pattern, re.IGNORECASE)
        wrong += [line for line in lines["is"] if not pattern.search(line)]
        wrong += [line for line in lines["is_not"] if pattern.search(line)]
    assert wrong == []


def test_no_line_that_only_sounds_like_an_end_is_one_by_any_pattern() -> None:
    ends = [re.compile(ending.pattern, re.IGNORECASE) for ending in endings() if ending.says in _ENDS]
    sounds = [line for lines in _LINES for line in lines["is_not"]]
    wrong = [line for line in sounds if any(pattern.search(line) for pattern in ends)]
    assert len(wrong) <= len(sounds) // 50, wrong


def test_a_result_is_told_from_a_beginning() -> None:
    assert is_result("Saved merged weights to 'out/lit_model.pth'")
    assert not is_result("loading weights")
