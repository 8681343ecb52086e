"""Addresses, counters and reasons as logs write them."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.numbers import address_and_port, reason_of, whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1<40000>", ("10.0.0.1", 40000)),
        ("[::ffff:10.0.0.1]:29500", ("10.0.0.1", 29500)),
        ("node01:29500", ("node01", 29500)),
        ("fe80::1%eth0<33>", ("fe80::1%eth0", 33)),
        ("[10.78.0.12]:29829.", ("10.78.0.12", 29829)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert address_and_port(text) == expected


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Connection refused", "refused"),
        ("111(Connection refused), errno 115", "refused"),
        ("Connection timed out", "timed-out"),
        ("No route to host", "no-route"),
        ("errno: 101 - Network is unreachable", "unreachable"),
        ("Connection reset by peer", "reset"),
        ("Cannot assign requested address", "no-address"),
        ("something else", "other"),
    ],
)
def test_reasons(words: str, reason: str) -> None:
    assert reason_of(words) == reason


def test_numbers_are_bounded() -> None:
    assert [whole("12"), whole(""), whole(None), whole("9" * 40), whole("x")] == [12, None, None, None, None]
