"""Floors as people write them."""

from __future__ import annotations

import pytest

from ncclcheck.model.bench_demands import Floor, parse_floor
from ncclcheck.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("300", Floor(300.0)),
        ("0.119", Floor(0.119)),
        ("all_gather=200", Floor(200.0, "all_gather")),
        ("AllReduce=3e2", Floor(300.0, "all_reduce")),
        ("@1G=300", Floor(300.0, None, 1 << 30)),
        ("all_reduce@1G=300", Floor(300.0, "all_reduce", 1 << 30)),
        (" send-recv @ 1.5m = 40 ", Floor(40.0, "send_recv", 3 << 19)),
    ],
)
def test_rules(text: str, floor: Floor) -> None:
    assert parse_floor(text) == floor


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no bandwidth"),
        ("fast", "'fast' is no bandwidth"),
        ("300GB/s", "no bandwidth"),
        ("-1", "out of range"),
        ("0", "out of range"),
        ("nan", "no bandwidth"),
        ("inf", "no bandwidth"),
        ("1_0", "no bandwidth"),
        ("\u0663", "no bandwidth"),
        ("all_reduce=1,all_gather=2", "one rule at a time: give --min-busbw again"),
        ("1e9", "out of range"),
        ("=300", "nothing stands before"),
        ("allreduces=300", "no collective"),
        ("all_reduce@=300", "is no size"),
        ("all_reduce@1Q=300", "'1Q' is no size"),
        ("all_reduce@1MB=300", "decimal or binary"),
        ("all_reduce", "no bandwidth"),
        ("all_reduce@1G", "no bandwidth"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_text_and_what_is_right(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_floor(text)
    assert str(caught.value).startswith(f"--min-busbw {text!r}: ")


def test_a_floor_is_written_as_it_is_read() -> None:
    for text in ("300", "all_gather=200", "@1G=300", "all_reduce@1.5M=0.119"):
        assert parse_floor(str(parse_floor(text))) == parse_floor(text)
