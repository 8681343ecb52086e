"""Messages from the network are believed only when they are what they claim to be."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from ncclcheck.exchange.messages import SCHEMA, SMALL_LIMIT_BYTES, Hello, pack, read_message, unpack
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from tests.fact_builders import launch

GOOD = Hello(SCHEMA, "0.1.0", "node1", launch(0, 2))


def test_what_was_said_is_what_is_read() -> None:
    assert read_message(encode(GOOD), Hello, SMALL_LIMIT_BYTES) == GOOD


def test_a_large_message_is_sent_compressed_and_a_small_one_as_it_is() -> None:
    large = Hello(SCHEMA, "0.1.0", "node1" * 1000, launch(0, 2))
    assert len(pack(large)) < len(encode(large)) / 10
    assert read_message(pack(large), Hello, SMALL_LIMIT_BYTES) == large
    assert pack(GOOD) == encode(GOOD)


def test_nothing_is_decompressed_beyond_the_limit() -> None:
    bomb = zlib.compress(bytes(1 << 27), 9)
    assert len(bomb) < 1 << 18
    tracemalloc.start()
    with pytest.raises(DecodeError, match="decompressed more than the 2097152 bytes"):
        unpack(bomb, 2 << 20)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (lambda data: data[:-20], "not whole"),
        (lambda data: data + b"more", "not whole"),
        (lambda data: data[:40] + b"@@@@@" + data[45:], "damaged|whole"),
        (lambda data: data[:1] + b"\xf9" + data[2:], "damaged"),  # a dictionary that nobody has
    ],
)
def test_what_was_compressed_and_is_damaged_is_refused(
    damaged: Callable[[bytes], bytes], reason: str
) -> None:
    data = zlib.compress(encode(GOOD))
    with pytest.raises(DecodeError, match=reason):
        read_message(damaged(data), Hello, SMALL_LIMIT_BYTES)


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
