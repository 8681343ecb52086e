"""Connections that were handed over: taken by name and caller, served, or closed."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.channels import Channels, reset


def test_a_connection_is_taken_by_its_name_and_caller_once() -> None:
    channels = Channels()
    near, far = socket.socketpair()
    channels.put("bandwidth/0/1", 7, near)
    assert channels.take("bandwidth/0/1", 8, Deadline(0.01)) is None
    assert channels.take("bandwidth/0/2", 7, Deadline(0.01)) is None
    assert channels.take("bandwidth/0/1", 7, Deadline(0.01)) is near
    assert channels.take("bandwidth/0/1", 7, Deadline(0.01)) is None
    near.close()
    far.close()


def test_who_waits_gets_it_as_soon_as_it_comes() -> None:
    channels = Channels()
    near, far = socket.socketpair()
    taken: list[socket.socket | None] = []
    waiting = threading.Thread(target=lambda: taken.append(channels.take("x", 1, Deadline(20))))
    waiting.start()
    channels.put("x", 1, near)
    waiting.join(10)
    assert taken == [near]
    near.close()
    far.close()


def test_a_name_that_is_served_is_answered_at_once() -> None:
    channels = Channels()
    near, far = socket.socketpair()
    channels.serve("echo", lambda one: one.sendall(b"here"))
    channels.put("echo/1", 1, near)
    far.settimeout(10)
    assert far.recv(4) == b"here"
    near.close()
    far.close()


def test_closing_hangs_up_on_those_that_nobody_took_and_frees_those_who_wait() -> None:
    channels = Channels()
    near, far = socket.socketpair()
    channels.put("x", 1, near)
    late_near, late_far = socket.socketpair()
    channels.close()
    channels.put("y", 1, late_near)
    for one in (far, late_far):
        one.settimeout(10)
        assert one.recv(1) == b""
        one.close()
    assert channels.take("z", 1, Deadline(60)) is None


def fill(one: socket.socket) -> None:
    """Send until nothing more fits into the queues."""
    one.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            one.send(bytes(1 << 16))


def drain(one: socket.socket) -> None:
    """Read until the other end hangs up."""
    one.settimeout(10)
    while one.recv(1 << 16):
        pass


def test_a_reset_tells_the_other_end_at_once_and_drops_what_was_queued() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
        fill(near)
        reset(near)
        with pytest.raises(ConnectionResetError):
            drain(far)
        far.close()
    reset(near)  # once more does no harm
