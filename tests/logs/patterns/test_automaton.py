"""The automaton and what stands in for it where it is not installed give the same answers."""

from __future__ import annotations

import random

import pytest

from ncclcheck.logs.patterns import automaton
from ncclcheck.logs.readers.glance import PATTERNS

LINES = (
    "node1:1:1 [0] nccl warn call to ibv_modify_qp failed",
    "step 10 loss 3.2",
    "runtimeerror: cuda out of memory",
    "",
    "größe ✓ traceback (most recent call last):",
)


@pytest.fixture(params=["automaton", "expression"])
def _kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "expression":
        monkeypatch.setattr(automaton, "Automaton", None)
    else:
        pytest.importorskip("ahocorasick")


@pytest.mark.usefixtures("_kind")
def test_a_line_with_a_text_that_a_pattern_needs_is_found() -> None:
    has = automaton.any_of(PATTERNS)
    assert [has(line.encode()) for line in LINES] == [True, False, True, False, True]


@pytest.mark.usefixtures("_kind")
def test_all_texts_in_a_line_are_found_where_they_overlap_too() -> None:
    found = automaton.all_of(("abc", "bcd", "cde", "xyz"))
    assert sorted(found("__abcde__")) == ["abc", "bcd", "cde"]
    assert sorted(found("")) == []


@pytest.mark.usefixtures("_kind")
def test_a_pattern_that_needs_no_text_is_rejected() -> None:
    with pytest.raises(ValueError, match="no text"):
        automaton.any_of(["a.b"])


def test_both_agree_on_random_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ahocorasick")
    by_automaton = automaton.any_of(PATTERNS)
    monkeypatch.setattr(automaton, "Automaton", None)
    by_expression = automaton.any_of(PATTERNS)
    pick = random.Random(5)  # noqa: S311
    words = [
        "error",
        "timeout",
        "nccl",
        "warn",
        "port",
        "cuda",
        "out of memory",
        "rank",
        "x",
        "failed",
        "ibv_",
    ]
    for _ in range(3000):
        line = " ".join(pick.choices(words, k=6)).encode()
        assert by_automaton(line) == by_expression(line), line
