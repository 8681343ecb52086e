"""Connections to a listener for a purpose: handed over to who waits for them, and only between nodes of one run."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.call import CallError, call
from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.reachability import Listeners, Target

OWN = ProbeGreeting("n", 1, channel="x")


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    one = Listeners()
    yield one
    one.close()


def test_the_connection_is_handed_over_under_its_name_and_outlives_the_listener(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    near = call(target, OWN, 7, Deadline(10))
    far = listeners.channels.take("x", 1, Deadline(10))
    assert far is not None
    listeners.quiet()
    listeners.close()
    near.sendall(b"data")
    far.settimeout(10)
    assert far.recv(4) == b"data"
    reset(near)
    reset(far)


@pytest.mark.parametrize(("own", "ticket"), [(ProbeGreeting("guess", 1, channel="x"), 7), (OWN, 8)])
def test_another_run_or_node_is_not_taken_for_ours(
    listeners: Listeners, own: ProbeGreeting, ticket: int
) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.admit("n", 7)
    with pytest.raises(CallError) as failed:
        call(target, own, ticket, Deadline(10))
    assert failed.value.outcome == ("error" if own.nonce == "guess" else "wrong-peer")


def test_a_closed_port_is_refused(listeners: Listeners) -> None:
    (target,) = listeners.open([("lo", "127.0.0.1")])
    listeners.close()
    with pytest.raises(CallError) as failed:
        call(target, OWN, 7, Deadline(10))
    assert failed.value.outcome == "refused"


def test_a_program_that_says_nothing_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(CallError) as failed:
        call(Target("lo", "127.0.0.1", mute.getsockname()[1]), OWN, 7, Deadline(0.2))
    assert failed.value.outcome == "stalled"


def test_a_program_that_speaks_another_language_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        target = Target("lo", "127.0.0.1", foreign.getsockname()[1])
        foreign.settimeout(10)

        def answer() -> None:
            one, _ = foreign.accept()
            one.sendall(b"SSH-2.0-x\r\n" + bytes(2000))
            one.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(CallError) as failed:
            call(target, OWN, 7, Deadline(10))
        assert failed.value.outcome == "error"
