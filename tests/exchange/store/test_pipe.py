"""A store at the other end of two pipes: its values, its loss, large documents, and calls that are malformed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store.base import VALUE_LIMIT_BYTES
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import over_pipe, within_process
from ncclcheck.exchange.store.pipe import Pipe, PipeAnswer, PipeCall, answer_call
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.line_buffer import LineBuffer


class Far:
    """The other end, which answers from a memory of its own until it is closed."""

    def __init__(self) -> None:
        self.memory = MemoryBackend()
        self.ended = threading.Event()
        self._in, writer = os.pipe()
        reader, self._out = os.pipe()
        self.pipe = Pipe(reader, writer, self.ended.set)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        lines = LineBuffer()
        while data := os.read(self._in, 1 << 16):
            for line in lines.feed(data):
                if line == b"close":
                    os.close(self._out)
                    return
                os.write(self._out, answer_call(line, self.memory))

    def close(self) -> None:
        os.write(self.pipe._writer, b"close\n")


@pytest.fixture
def far() -> Iterator[Far]:
    one = Far()
    yield one
    if not one.ended.is_set():
        one.close()
        one.ended.wait(5)


def test_values_documents_and_counters_pass_through(far: Far) -> None:
    store = over_pipe(far.pipe, 29500)
    other = within_process(far.memory, 29500)
    assert store.port == 29500
    assert store.set("a", b"\x00") is None
    assert other.get("a") == b"\x00"
    assert store.get("b") == Missing("absent", "b is not set")
    assert store.add("n", 1) == 1
    assert other.add("n", 1) == 2
    document = os.urandom(5 << 20)
    assert other.set_document("report", document) is None
    assert store.wait_document("report", Deadline(5)) == document
    assert store.lost is None


def test_a_document_of_usual_size_is_one_value(far: Far) -> None:
    store = over_pipe(far.pipe, 0)
    assert store.set_document("facts/1", bytes(300_000)) is None
    assert far.memory.read("facts/1") == b"=" + bytes(300_000)


def test_the_end_of_the_other_side_is_noticed_though_nothing_was_asked(far: Far) -> None:
    store = over_pipe(far.pipe, 0)
    far.close()
    assert far.ended.wait(5)
    found = store.get("a")
    assert isinstance(found, Missing)
    assert found.missing == "error"
    assert store.lost == found
    assert store.add("n", 1) == found


def test_a_line_that_answers_nothing_can_be_read_and_does_not_come_for_ever(far: Far) -> None:
    os.write(far._out, b"a task\n")
    assert far.pipe.next_line(5) == b"a task"
    assert far.pipe.next_line(0.01) is None


def test_an_answer_to_another_call_loses_the_store(far: Far) -> None:
    os.write(far._out, b'{"id":99}\n')
    found = over_pipe(far.pipe, 0).get("a")
    assert isinstance(found, Missing)
    assert "answer 99 came to call 1" in found.detail


def asked(memory: MemoryBackend, call: PipeCall) -> PipeAnswer:
    line = answer_call(encode(call), memory)
    assert line.endswith(b"\n")
    return decode(line, PipeAnswer)


def test_what_is_set_is_read_and_what_is_not_is_none() -> None:
    memory = MemoryBackend()
    assert asked(memory, PipeCall(1, "set", "a", b"\x00\xff\n")) == PipeAnswer(1)
    assert asked(memory, PipeCall(2, "read", "a")) == PipeAnswer(2, value=b"\x00\xff\n")
    assert asked(memory, PipeCall(3, "read", "b")) == PipeAnswer(3)
    assert asked(memory, PipeCall(4, "add", "n", amount=2)).count == 2
    assert asked(memory, PipeCall(5, "read", "n")).value == b"2"


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
        encode(PipeCall(1, "read", "k" * 2000)),
        encode(PipeCall(1, "set", "k", bytes(VALUE_LIMIT_BYTES + 1))),
    ],
)
def test_what_is_no_call_of_ours_is_refused(line: bytes) -> None:
    with pytest.raises(DecodeError):
        answer_call(line, MemoryBackend())


def test_a_store_that_cannot_is_an_error_in_the_answer() -> None:
    told = asked(MemoryBackend(limit_bytes=3), PipeCall(7, "set", "a", b"four"))
    assert told.id == 7
    assert "No space left" in told.error
