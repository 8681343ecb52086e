"""How far a peer's clock is from ours, with a bound, from the quickest of a few round trips with four time stamps each.

The rule is NTP's (RFC 5905, 8): the caller notes when it asks and when the answer is there, the peer when the question
came and when it answered. However the way's time is split between the two directions, the true offset is within half
the round trip of the measured one. The quickest round trip bounds it best; a launcher's time is nowhere in it.
"""

from __future__ import annotations

import socket
import struct
import time

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.call import CallError, call
from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.latency import Callee
from ncclcheck.model.snapshot import Measured, Probe

CHANNEL = "clock"
ROUND_TRIPS = 8
_ASK = b"?"
_STAMPS = struct.Struct("!qq")  # nanoseconds since 1970, by the peer's clock: asked at, answered at
_LATEST_NS = 1 << 62
_US = 1000


class Sample(Struct, frozen=True):
    """One round trip, all in ns: how far the peer's clock is ahead of ours, and how long the way took both ways."""

    offset_ns: float
    round_trip_ns: int


def sample(asked: int, arrived: int, answered: int, heard: int) -> Sample:
    """Return the sample of four time stamps: first and last by our clock, the two between by the peer's."""
    return Sample(
        ((arrived - asked) + (answered - heard)) / 2, max((heard - asked) - (answered - arrived), 0)
    )


def tell_time(connection: socket.socket) -> None:
    """Answer each question with its arrival time and the time of the answer, until the caller hangs up."""
    deadline = Deadline(timeouts.CLOCK_TELL_S)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not deadline.passed:
            connection.settimeout(max(deadline.left(), 0.001))
            if connection.recv(1) != _ASK:
                break
            arrived = time.time_ns()
            connection.sendall(_STAMPS.pack(arrived, time.time_ns()))
    except OSError:
        pass  # the caller has the outcome
    finally:
        connection.close()


def measure_clock(host: str, own_greeting: ProbeGreeting, callee: Callee, deadline: Deadline) -> Probe:
    """Measure how far the callee's clock is ahead of this node's, in us; `measured.least` is the quickest round trip.

    The true value is within half of that round trip.
    """
    target = callee.target
    failed = Probe("clock", host, callee.host, target.interface, target.address, target.port, "error")
    started = time.monotonic()
    patience = deadline.within(timeouts.CLOCK_CALL_S)
    try:
        connection = call(target, replace(own_greeting, channel=CHANNEL), callee.ticket, patience)
    except CallError as error:
        return replace(failed, outcome=error.outcome, detail=str(error))
    try:
        own_address = str(connection.getsockname()[0])
        samples = [_ask(connection, patience) for _ in range(ROUND_TRIPS)]
    except TimeoutError:
        return replace(failed, outcome="stalled", detail="the peer did not send its time in time")
    except OSError as error:
        return replace(failed, detail=str(error)[:200])
    finally:
        reset(connection)
    best = min(samples, key=lambda sample: sample.round_trip_ns)
    least_us = round(best.round_trip_ns / _US, 1)
    return replace(
        failed,
        outcome="ok",
        value=round(best.offset_ns / _US, 1),
        unit="us",
        detail=f"within {least_us / 2:.0f} us, half of the quickest of {len(samples)} round trips",
        measured=Measured(len(samples), round(time.monotonic() - started, 4), own_address, least_us),
    )


def _ask(connection: socket.socket, deadline: Deadline) -> Sample:
    connection.settimeout(max(deadline.left(), 0.001))
    asked = time.time_ns()
    connection.sendall(_ASK)
    data = b""
    while len(data) < _STAMPS.size:
        part = connection.recv(_STAMPS.size - len(data))
        if not part:
            raise ConnectionResetError("the peer hung up")
        data += part
    heard = time.time_ns()
    arrived, answered = _STAMPS.unpack(data)
    if not -_LATEST_NS < arrived <= answered < _LATEST_NS:
        raise ConnectionAbortedError("the peer's answer is not a time")
    return sample(asked, arrived, answered, heard)
