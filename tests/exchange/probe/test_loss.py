"""Many small round trips on real connections: both ends count what they sent."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.latency import Callee
from ncclcheck.exchange.probe.loss import CHANNEL, CONNECTIONS, ROUND_TRIPS, echo_and_count, exchange
from ncclcheck.exchange.probe.reachability import Listeners
from ncclcheck.model.fact import Missing

ME = ProbeGreeting("n", 1)


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    own = Listeners()
    own.admit("n", 7)
    yield own
    own.close()


def callee(listeners: Listeners) -> Callee:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    return Callee(7, "b", target)


def test_both_ends_count_what_they_sent_and_loopback_loses_nothing(listeners: Listeners) -> None:
    listeners.channels.serve(CHANNEL, echo_and_count)
    (found,) = exchange([(3, callee(listeners))], ME, 20.0, Deadline(20))
    assert (found.number, found.outcome, found.trips) == (3, "ok", CONNECTIONS * ROUND_TRIPS), found
    for counted in (found.out, found.back):
        assert not isinstance(counted, Missing)
        assert counted.sent >= CONNECTIONS * ROUND_TRIPS
        assert counted.lost == 0


def test_a_partner_that_never_answers_costs_bounded_time_and_counts_nothing_back(
    listeners: Listeners,
) -> None:
    held: list[socket.socket] = []
    listeners.channels.serve(CHANNEL, held.append)
    started = time.monotonic()
    (found,) = exchange([(0, callee(listeners))], ME, 0.1, Deadline(5))
    assert time.monotonic() - started < 30
    assert (found.trips, isinstance(found.back, Missing)) == (0, True)
    for connection in held:
        connection.close()


def test_a_partner_that_is_not_there_does_not_spoil_the_others(listeners: Listeners) -> None:
    listeners.channels.serve(CHANNEL, echo_and_count)
    there = callee(listeners)
    gone = Listeners()
    nobody = callee(gone)
    gone.close()
    refused, answered = exchange([(0, nobody), (1, there)], ME, 20.0, Deadline(20))
    assert (refused.outcome, answered.outcome) == ("refused", "ok")
