"""A line of whoever is at the other end: whole, bounded, in time, or an error."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.received_line import receive_line


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    own, peer = socket.socketpair()
    with own, peer:
        yield own, peer


def test_a_line_that_comes_in_pieces_is_returned_without_its_end(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    own, peer = ends
    peer.sendall(b"ab")
    peer.sendall(b"c\n")
    assert receive_line(own, 16, Deadline(20)) == b"abc"


@pytest.mark.parametrize("sent", [b"", b"no end", b"x" * 17, b"x" * 17 + b"\n"])
def test_what_ends_early_or_is_too_long_is_no_line(
    ends: tuple[socket.socket, socket.socket], sent: bytes
) -> None:
    own, peer = ends
    peer.sendall(sent)
    peer.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionResetError):
        receive_line(own, 16, Deadline(20))


def test_a_byte_now_and_then_does_not_move_the_deadline(ends: tuple[socket.socket, socket.socket]) -> None:
    own, peer = ends
    peer.sendall(b"slow")
    with pytest.raises(TimeoutError):
        receive_line(own, 16, Deadline(0.05))
