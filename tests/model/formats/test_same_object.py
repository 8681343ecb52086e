"""Keys by identity."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.same_object import SameObject


def test_a_key_is_equal_to_a_key_of_the_same_object_only() -> None:
    first, equal = Missing("absent", "x"), Missing("absent", "x")
    assert first == equal
    assert SameObject(first) == SameObject(first)
    assert hash(SameObject(first)) == hash(SameObject(first))
    assert SameObject(first) != SameObject(equal)
    assert SameObject(first) != first
