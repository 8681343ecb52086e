"""The client of NCCL RAS against servers of several versions, and against what is none."""

from __future__ import annotations

import socket
import time

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.ras_client import NoAnswerError, address_of, ask
from ncclcheck.model.errors import UsageError
from tests.exchange.ras_server import saying, serving


def test_an_nccl_that_knows_json() -> None:
    with serving(["text"], ["{}"]) as server:
        assert ask("127.0.0.1", server.port, Deadline(10)) == b"{}"
        assert server.commands == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json", "VERBOSE STATUS"]


def test_an_nccl_before_2_28_7() -> None:
    long = "Job summary\n" + "line\n" * 100_000
    with serving([long]) as server:
        assert ask("127.0.0.1", server.port, Deadline(10)) == long.encode()


def test_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(NoAnswerError, match="Connection refused"):
            ask("127.0.0.1", held.getsockname()[1], Deadline(5))


@pytest.mark.parametrize("words", [b"", b"SERVER PROTOCOL 2\n", b"SERVER PROTOCOL 2\nOK\nOK\nhalf"])
def test_a_server_that_hangs(words: bytes) -> None:
    with saying(words, closes=False) as port:
        started = time.monotonic()
        with pytest.raises(NoAnswerError, match="in time"):
            ask("127.0.0.1", port, Deadline(0.5))
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "words", [b"HTTP/1.1 400\r\n\r\n", b"\x00\xff" * 5000, b"SSH-2.0-OpenSSH_9.6\n", b"\n"]
)
def test_garbage(words: bytes) -> None:
    with saying(words, closes=False) as port, pytest.raises(NoAnswerError, match="is not NCCL RAS"):
        ask("127.0.0.1", port, Deadline(5))


def test_an_answer_without_end() -> None:
    with serving(["x" * 5000]) as server, pytest.raises(NoAnswerError, match="without end"):
        ask("127.0.0.1", server.port, Deadline(10), most_bytes=1000)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("node1", ("node1", 28028)),
        ("node1:4000", ("node1", 4000)),
        ("[::1]:4000", ("::1", 4000)),
        ("[::1]", ("::1", 28028)),
        ("fe80::1", ("fe80::1", 28028)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", ":5", "node1:", "node1:0", "node1:70000", "node1:x", "[::1]:x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError):
        address_of(text)
