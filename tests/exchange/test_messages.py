"""Messages from the network are believed only when they are what they claim to be."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, Hello, read_message
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from tests.fact_builders import launch

GOOD = Hello(SCHEMA, "0.1.0", "node1", launch(0, 2))


def test_what_was_said_is_what_is_read() -> None:
    assert read_message(encode(GOOD), Hello, SMALL_LIMIT_BYTES) == GOOD


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated"),
        (b"\x80\x04\x95", "malformed"),
        (b"[]", "object"),
        (b'{"schema_version":"99","tool_version":"9"}', "schema version '99'"),
        (encode(GOOD)[:-1] + b',"more":1}', "more"),
        (encode(GOOD).replace(b'"node1"', b"1"), "host"),
        (b"x" * (SMALL_LIMIT_BYTES + 1), "more than"),
        (b"[" * 100_000, "malformed|nested|object"),
    ],
)
def test_everything_else_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read_message(data, Hello, SMALL_LIMIT_BYTES)
