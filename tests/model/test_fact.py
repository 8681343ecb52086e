"""A value or the reason why there is none."""

from __future__ import annotations

from typing import get_type_hints

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing


def test_a_missing_says_why_in_words() -> None:
    assert str(Missing("timeout", "no answer in 10 s")) == "timeout: no answer in 10 s"
    assert str(Missing("absent")) == "absent"


def test_the_marker_of_a_type_is_made_once() -> None:
    first, second = (get_type_hints(Thing)["count"] for Thing in (_First, _Second))
    assert first is second


class _First(Struct):
    count: Fact[dict[str, int]]


class _Second(Struct):
    count: Fact[dict[str, int]]
