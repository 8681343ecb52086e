"""What the kernel counts on a connection, on real ones."""

from __future__ import annotations

import socket

import pytest

from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.tcp_info import Segments, kernel_round_trip_us, segments_of
from ncclcheck.model.fact import Missing


def test_packets_that_were_sent_are_counted_also_after_a_reset() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as caller,
    ):
        called, _ = server.accept()
        caller.sendall(b"x")
        called.recv(1)
        reset(called)
        counted = segments_of((caller,))
        assert not isinstance(counted, Missing)
        assert (counted.sent, counted.resent, counted.lost) == (1, 0, 0)


def test_a_process_that_answers_late_does_not_make_the_kernel_late() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as caller,
    ):
        called, _ = server.accept()
        caller.sendall(b"x")
        caller.settimeout(0.05)
        with pytest.raises(TimeoutError):
            caller.recv(1)  # nobody answers for so long
        called.sendall(called.recv(1))
        caller.settimeout(20)
        assert caller.recv(1) == b"x"
        round_trip_us = kernel_round_trip_us(caller)
        assert isinstance(round_trip_us, float)
        assert 0 < round_trip_us < 25_000
        called.close()


def test_what_was_sent_again_in_vain_was_not_lost() -> None:
    assert Segments(100, 7, 3).lost == 4
    assert Segments(100, 2, 3).lost == 0


def test_what_is_no_connection_any_more_tells_nothing() -> None:
    closed = socket.socket()
    closed.close()
    assert isinstance(segments_of((closed,)), Missing)
