"""A value or the reason why there is none."""

from __future__ import annotations

from typing import get_type_hints

from msgspec import Struct

from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import LOADER_NOT_ASKED, NOT_IN_A_TREE, NOT_READ, Fact, Missing


def test_a_missing_says_why_in_words() -> None:
    assert str(Missing("timeout", "no answer in 10 s")) == "timeout: no answer in 10 s"
    assert str(Missing("absent")) == "absent"


def test_what_nobody_tried_to_read_is_told_from_what_is_not_there_after_json_too() -> None:
    for missing in (NOT_READ, NOT_IN_A_TREE, LOADER_NOT_ASKED):
        assert decode(encode(missing), Missing).is_untried
    assert not Missing("absent", "no such file").is_untried
    assert not Missing("denied", NOT_READ.detail).is_untried


def test_the_marker_of_a_type_is_made_once() -> None:
    first, second = (get_type_hints(Thing)["count"] for Thing in (_First, _Second))
    assert first is second


class _First(Struct):
    count: Fact[dict[str, int]]


class _Second(Struct):
    count: Fact[dict[str, int]]
