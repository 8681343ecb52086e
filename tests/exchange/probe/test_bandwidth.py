"""One transfer with real connections on loopback: who leads, who is told, and what ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.bandwidth import GO, Window, channel_of, receive, send
from ncclcheck.exchange.probe.call import call
from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.reachability import Listeners, Target
from ncclcheck.measure.links.rounds import STREAMS

pytestmark = pytest.mark.alone

OWN = ProbeGreeting("n", 1)
WINDOW = Window(0.02, 0.05)


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    one = Listeners()
    one.admit("n", 7)
    yield one
    one.close()


def listening(listeners: Listeners) -> Target:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    return target


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()} & {"send", "receive"}


def test_the_receiver_counts_and_ends_the_sender(listeners: Listeners) -> None:
    target = listening(listeners)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, 3, target, OWN, 7, WINDOW, Deadline(20))
        received = receive(3, listeners.channels, 1, WINDOW, Deadline(20))
        sent = sending.result(20)
    assert (sent.number, sent.outcome, sent.source_address) == (3, "ok", "127.0.0.1")
    assert (received.number, received.outcome) == (3, "ok")
    assert received.bytes_per_s > 1e6
    assert received.seconds >= WINDOW.window_s
    assert threads() == set()


def test_a_sender_without_a_receiver_that_says_go_gives_up_at_the_deadline(listeners: Listeners) -> None:
    started = time.monotonic()
    sent = send(0, listening(listeners), OWN, 7, WINDOW, Deadline(0.3))
    assert (sent.outcome, sent.detail) == ("stalled", "the receiver never said go")
    assert time.monotonic() - started < 5
    assert threads() == set()


def test_a_receiver_without_a_sender_gives_up_at_the_deadline(listeners: Listeners) -> None:
    received = receive(0, listeners.channels, 1, WINDOW, Deadline(0.1))
    assert (received.outcome, received.detail) == ("error", "the sender never called")


def test_a_sender_that_is_told_to_go_and_sends_nothing_is_stalled(listeners: Listeners) -> None:
    target = listening(listeners)
    calls = [
        call(target, ProbeGreeting("n", 1, channel=channel_of(0, stream)), 7, Deadline(10))
        for stream in range(STREAMS)
    ]
    received = receive(0, listeners.channels, 1, WINDOW, Deadline(0.3))
    assert (received.outcome, received.detail) == ("stalled", "connected, but nothing came")
    for one in calls:
        reset(one)


def test_a_sender_that_stops_in_the_middle_is_stalled(listeners: Listeners) -> None:
    target = listening(listeners)

    def little() -> None:
        calls = [
            call(target, ProbeGreeting("n", 1, channel=channel_of(0, stream)), 7, Deadline(10))
            for stream in range(STREAMS)
        ]
        calls[0].sendall(bytes(1000))
        with suppress(ConnectionResetError):
            while calls[0].recv(1):  # go, and then the end
                pass
        for one in calls:
            reset(one)

    speaker = threading.Thread(target=little, daemon=True)
    speaker.start()
    received = receive(0, listeners.channels, 1, WINDOW, Deadline(10))
    assert (received.outcome, received.detail) == ("stalled", "data came at first, and then no more")
    speaker.join(10)


def test_a_receiver_that_never_ends_is_cut_off(listeners: Listeners) -> None:
    """It says go and then reads nothing: the sender ends by itself."""
    target = listening(listeners)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send, 0, target, OWN, 7, WINDOW, Deadline(10))
        taken = [listeners.channels.take(channel_of(0, stream), 1, Deadline(10)) for stream in range(STREAMS)]
        for one in taken:
            assert one is not None
            one.sendall(GO)
        assert sending.result(10).outcome == "ok"  # its side: the receiver has the outcome
    for one in taken:
        assert one is not None
        reset(one)
    assert threads() == set()


def test_a_receiver_that_is_not_there_is_refused(listeners: Listeners) -> None:
    target = listening(listeners)
    listeners.close()
    assert send(0, target, OWN, 7, WINDOW, Deadline(10)).outcome == "refused"
