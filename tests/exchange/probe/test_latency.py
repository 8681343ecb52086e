"""Round trips on real connections."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.latency import CHANNEL, Callee, echo, measure_latency
from ncclcheck.exchange.probe.reachability import Listeners
from ncclcheck.measure.links.rounds import ROUND_TRIPS

pytestmark = pytest.mark.alone

DELAY_S = 0.02


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    one = Listeners()
    one.admit("n", 7)
    yield one
    one.close()


def callee(listeners: Listeners) -> Callee:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    return Callee(7, "b", target)


def test_the_median_of_the_round_trips_is_the_value(listeners: Listeners) -> None:
    listeners.channels.serve(CHANNEL, echo)
    probe = measure_latency("a", "n", 1, callee(listeners), 5.0, Deadline(20))
    assert (probe.kind, probe.from_host, probe.to_host, probe.outcome, probe.unit) == (
        "latency",
        "a",
        "b",
        "ok",
        "us",
    )
    assert probe.measured is not None
    assert probe.value is not None
    assert probe.measured.least is not None
    assert (probe.measured.samples, probe.measured.source_address) == (ROUND_TRIPS, "127.0.0.1")
    assert 0 < probe.measured.least <= probe.value < 1e6


def test_a_slow_way_is_measured_in_its_time(listeners: Listeners) -> None:
    def late(connection: socket.socket) -> None:
        with connection, suppress(ConnectionResetError):
            while data := connection.recv(1):
                threading.Event().wait(DELAY_S)
                connection.sendall(data)

    listeners.channels.serve(CHANNEL, late)
    started = time.monotonic()
    probe = measure_latency("a", "n", 1, callee(listeners), 5 * DELAY_S, Deadline(20))
    assert time.monotonic() - started < 60 * DELAY_S
    assert probe.measured is not None
    assert probe.value is not None
    assert probe.measured.samples < ROUND_TRIPS
    assert probe.value >= DELAY_S * 1e6


def test_a_peer_that_does_not_answer_costs_no_more_than_the_deadline(listeners: Listeners) -> None:
    held: list[socket.socket] = []
    listeners.channels.serve(CHANNEL, held.append)
    started = time.monotonic()
    probe = measure_latency("a", "n", 1, callee(listeners), 1.0, Deadline(0.3))
    assert time.monotonic() - started < 5
    assert (probe.outcome, probe.value) == ("stalled", None)
    for one in held:
        one.close()


def test_a_peer_that_is_not_there_is_refused(listeners: Listeners) -> None:
    nobody = callee(listeners)
    listeners.close()
    probe = measure_latency("a", "n", 1, nobody, 1.0, Deadline(10))
    assert (probe.outcome, probe.value, probe.measured) == ("refused", None, None)
