"""Comparing a value between hosts."""

from __future__ import annotations

from ncclcheck.checks.majority import compare, evidence, sentence


def test_equal_values_do_not_differ() -> None:
    same = compare([("a", 1), ("b", 1)])
    assert (same.differs, same.tie, same.odd_hosts) == (False, False, ())
    assert not compare(()).differs


def test_the_few_are_the_odd_ones() -> None:
    comparison = compare([("a", 1), ("b", 2), ("c", 1), ("d", 3)])
    assert comparison.odd_hosts == ("b", "d")
    assert sentence(comparison) == "2 on b, 3 on d, 1 on a and c"
    assert [piece.expected for piece in evidence(comparison, "x", "file")] == ["1", "1", "1"]


def test_a_tie_has_no_usual_value_and_names_all() -> None:
    comparison = compare([("a", 1), ("b", 2)])
    assert comparison.usual is None
    assert comparison.odd_hosts == ("a", "b")
    assert sentence(comparison) == "1 on a, 2 on b (no majority)"
    assert evidence(comparison, "x", "file")[0].expected == "the same on every node"


def test_a_tie_of_the_few_is_no_tie() -> None:
    assert not compare([("a", 1), ("b", 1), ("c", 2), ("d", 3)]).tie
