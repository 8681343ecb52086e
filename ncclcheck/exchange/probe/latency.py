"""Round trips of a small message on an established connection, as the first bytes of every collective are."""

from __future__ import annotations

import socket
import time
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.call import CallError, call
from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.probe.tcp_info import kernel_round_trip_us, segments_of
from ncclcheck.measure.links.rounds import ROUND_TRIPS
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Measured, Probe

CHANNEL = "latency"
_MESSAGE = b"."
_NOT_COUNTED = 3


class Callee(Struct, frozen=True):
    """The peer to measure: its ticket, its name and its listener."""

    ticket: int
    host: str
    target: Target


def echo(connection: socket.socket) -> None:
    """Send back what comes, until the caller hangs up; at most for some seconds."""
    deadline = Deadline(timeouts.ECHO_S)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not deadline.passed:
            connection.settimeout(max(deadline.left(), 0.001))
            data = connection.recv(64)
            if not data:
                break
            connection.sendall(data)
    except OSError:
        pass  # the caller has the outcome
    finally:
        connection.close()


def measure_latency(
    host: str, nonce: str, ticket: int, callee: Callee, seconds: float, deadline: Deadline
) -> Probe:
    """Return the median of 30 round trips in us, or of as many as `seconds` allow."""
    target = callee.target
    place = target.interface, target.address, target.port
    failed = Probe("latency", host, callee.host, *place, "error")
    try:
        connection = call(target, ProbeGreeting(nonce, ticket, channel=CHANNEL), callee.ticket, deadline)
    except CallError as error:
        return replace(failed, outcome=error.outcome, detail=str(error))
    started = time.monotonic()
    try:
        own_address = str(connection.getsockname()[0])
        times_us = _round_trips(connection, deadline, started + seconds)
        counted = segments_of((connection,))
        kernel_us = kernel_round_trip_us(connection)
    except TimeoutError:
        return replace(failed, outcome="stalled", detail="a small message did not come back")
    except OSError as error:
        return replace(failed, detail=str(error)[:200])
    finally:
        reset(connection)
    least_us = round(min(times_us), 1)
    taken_s = round(time.monotonic() - started, 4)
    return replace(
        failed,
        outcome="ok",
        value=round(median(times_us), 1),
        unit="us",
        detail=f"median of {len(times_us)} round trips, the quickest {least_us:.0f} us",
        measured=Measured(
            len(times_us),
            taken_s,
            own_address,
            least_us,
            segments=counted if isinstance(counted, Missing) else counted.sent,
            resent=counted if isinstance(counted, Missing) else counted.resent,
            kernel_us=kernel_us,
        ),
    )


def _round_trips(connection: socket.socket, deadline: Deadline, enough: float) -> list[float]:
    """Return the times that count: without the first ones, which wake up threads, unless there are no more."""
    times_us: list[float] = []
    while len(times_us) < _NOT_COUNTED + ROUND_TRIPS:
        connection.settimeout(max(deadline.left(), 0.001))
        before = time.perf_counter()
        connection.sendall(_MESSAGE)
        if not connection.recv(1):
            raise ConnectionResetError("the peer hung up")
        times_us.append((time.perf_counter() - before) * 1e6)
        if time.monotonic() >= enough:
            break
    return times_us[_NOT_COUNTED:] or times_us[-1:]
