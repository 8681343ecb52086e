"""A connect ends as a word."""

from __future__ import annotations

import errno
import socket

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.dial import dial, outcome_of


def test_an_open_port_is_connected() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert dial(["127.0.0.1"], server.getsockname()[1], Deadline(2))[0] == "connected"


def test_a_closed_port_is_refused_and_the_errno_named() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        outcome, detail = dial(["127.0.0.1"], held.getsockname()[1], Deadline(2))
    assert outcome == "refused"
    assert "ECONNREFUSED" in detail


def test_silence_is_filtered_at_the_deadline() -> None:
    """A listener whose queue is full drops SYNs, as a firewall does."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        assert dial(["127.0.0.1"], port, Deadline(0.5))[0] == "filtered"
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH])
def test_no_route_is_told_from_silence(number: int) -> None:
    assert outcome_of(number) == "no-route"
    assert outcome_of(errno.ETIMEDOUT) == "filtered"


def test_the_best_of_several_addresses_counts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert dial(["127.0.0.9", "127.0.0.1"], server.getsockname()[1], Deadline(2))[0] == "connected"


def test_no_address_is_an_error_not_a_crash() -> None:
    assert dial([], 1, Deadline(1))[0] == "error"
    assert dial(["not an address"], 1, Deadline(1))[0] == "error"
