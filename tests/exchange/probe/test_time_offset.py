"""Offsets of clocks on real connections, and the rule behind them."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.latency import Callee
from ncclcheck.exchange.probe.reachability import Listeners
from ncclcheck.exchange.probe.time_offset import CHANNEL, ROUND_TRIPS, measure_clock, sample, tell_time

HOUR_NS = 3600 * 10**9


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    one = Listeners()
    one.admit("n", 7)
    yield one
    one.close()


def callee(listeners: Listeners) -> Callee:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    return Callee(7, "b", target)


def ahead(offset_ns: int) -> Callable[[socket.socket], None]:
    """A peer whose clock is that far ahead."""

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while connection.recv(1):
                now = time.time_ns() + offset_ns
                connection.sendall(struct.pack("!qq", now, now))

    return answer


def test_the_true_offset_is_within_half_the_round_trip_however_the_way_is_split() -> None:
    for there, back in ((10, 10), (20, 0), (0, 20)):
        true_offset, work = 500, 7
        came = 1000 + there + true_offset
        heard = 1000 + there + work + back
        one = sample(1000, came, came + work, heard)
        assert one.round_trip_ns == there + back
        assert abs(one.offset_ns - true_offset) <= one.round_trip_ns / 2


def test_two_nodes_with_one_clock_are_equal_within_the_bound(listeners: Listeners) -> None:
    listeners.channels.serve(CHANNEL, tell_time)
    probe = measure_clock("a", ProbeGreeting("n", 1), callee(listeners), Deadline(20))
    assert (probe.kind, probe.from_host, probe.to_host, probe.outcome, probe.unit) == (
        "clock",
        "a",
        "b",
        "ok",
        "us",
    )
    assert probe.value is not None
    assert probe.measured is not None
    assert probe.measured.least is not None
    assert probe.measured.samples == ROUND_TRIPS
    assert abs(probe.value) <= probe.measured.least / 2
    assert probe.detail.startswith("within ")


@pytest.mark.parametrize("offset_ns", [HOUR_NS, -HOUR_NS])
def test_a_clock_that_is_off_is_measured(listeners: Listeners, offset_ns: int) -> None:
    listeners.channels.serve(CHANNEL, ahead(offset_ns))
    probe = measure_clock("a", ProbeGreeting("n", 1), callee(listeners), Deadline(20))
    assert probe.value is not None
    assert probe.measured is not None
    assert probe.measured.least is not None
    assert abs(probe.value - offset_ns / 1000) <= probe.measured.least / 2 + 1


def test_a_peer_that_says_nothing_costs_no_more_than_its_time(listeners: Listeners) -> None:
    held: list[socket.socket] = []
    listeners.channels.serve(CHANNEL, held.append)
    started = time.monotonic()
    probe = measure_clock("a", ProbeGreeting("n", 1), callee(listeners), Deadline(20))
    assert time.monotonic() - started < 5
    assert (probe.outcome, probe.value) == ("stalled", None)
    for one in held:
        one.close()


def test_impossible_clock_answer_is_an_error(listeners: Listeners) -> None:
    def lie(connection: socket.socket) -> None:
        with connection:
            connection.recv(1)
            connection.sendall(struct.pack("!qq", 2**63 - 1, 5))

    listeners.channels.serve(CHANNEL, lie)
    probe = measure_clock("a", ProbeGreeting("n", 1), callee(listeners), Deadline(20))
    assert (probe.outcome, probe.value) == ("error", None)


def test_a_peer_that_is_not_there_is_refused(listeners: Listeners) -> None:
    nobody = callee(listeners)
    listeners.close()
    assert measure_clock("a", ProbeGreeting("n", 1), nobody, Deadline(5)).outcome == "refused"
