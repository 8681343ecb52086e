"""Calls and answers of a store behind a pipe, whole, broken, and too large."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.store.memory import Memory
from ncclcheck.exchange.store.relay import VALUE_LIMIT_BYTES, Answer, Call, answer
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError


def asked(memory: Memory, call: Call) -> Answer:
    line = answer(encode(call), memory)
    assert line.endswith(b"\n")
    return decode(line, Answer)


def test_what_is_set_is_read_and_what_is_not_is_none() -> None:
    memory = Memory()
    assert asked(memory, Call(1, "set", "a", b"\x00\xff\n")) == Answer(1)
    assert asked(memory, Call(2, "read", "a")) == Answer(2, value=b"\x00\xff\n")
    assert asked(memory, Call(3, "read", "b")) == Answer(3)
    assert asked(memory, Call(4, "add", "n", amount=2)).count == 2
    assert asked(memory, Call(5, "read", "n")).value == b"2"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b'{"id": 1}',
        b'{"id": 1, "op": "delete"}',
        b'{"id": 1, "op": "set", "key": "a", "value": "x!"}',
        b'{"id": 1, "op": "read", "more": 1}',
        b"[" * 100_000,
        encode(Call(1, "read", "k" * 2000)),
        encode(Call(1, "set", "k", bytes(VALUE_LIMIT_BYTES + 1))),
    ],
)
def test_what_is_no_call_of_ours_is_refused(line: bytes) -> None:
    with pytest.raises(DecodeError):
        answer(line, Memory())


def test_a_store_that_cannot_is_an_error_in_the_answer() -> None:
    told = asked(Memory(limit_bytes=3), Call(7, "set", "a", b"four"))
    assert told.id == 7
    assert "No space left" in told.error
