"""A connect ends as a word."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.dial import dial, outcome_of
from tests.ports import free_port


def test_an_open_port_is_connected() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert dial(["127.0.0.1"], server.getsockname()[1], Deadline(2))[0] == "connected"


def test_a_closed_port_is_refused_and_the_errno_named() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        outcome, detail = dial(["127.0.0.1"], held.getsockname()[1], Deadline(2))
    assert outcome == "refused"
    assert "ECONNREFUSED" in detail


@contextmanager
def full_queue(address: str, port: int = 0) -> Iterator[int]:
    """The port of a listener whose queue is full: it drops SYNs, as a firewall does."""
    with ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.socket())
        server.bind((address, port))
        server.listen(0)
        for _ in range(4):
            filler = open_sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield int(server.getsockname()[1])


def test_silence_is_filtered_at_the_deadline() -> None:
    with full_queue("127.0.0.1") as port:
        assert dial(["127.0.0.1"], port, Deadline(0.5))[0] == "filtered"


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH])
def test_no_route_is_told_from_silence(number: int) -> None:
    assert outcome_of(number) == "no-route"
    assert outcome_of(errno.ETIMEDOUT) == "filtered"


def test_a_client_goes_on_to_the_next_address_where_one_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert dial(["127.0.0.9", "127.0.0.1"], server.getsockname()[1], Deadline(2))[0] == "connected"


def test_a_client_waits_at_an_address_that_is_silent_though_a_later_one_would_connect() -> None:
    with full_queue("127.0.0.9", free_port()) as port, socket.create_server(("127.0.0.1", port)):
        assert dial(["127.0.0.9", "127.0.0.1"], port, Deadline(0.5)) == ("filtered", "127.0.0.9: no answer")
        assert dial(["127.0.0.1", "127.0.0.9"], port, Deadline(2))[0] == "connected"


def test_no_address_is_an_error_not_a_crash() -> None:
    assert dial([], 1, Deadline(1))[0] == "error"
    assert dial(["not an address"], 1, Deadline(1))[0] == "error"
