"""Many small round trips over several connections at once: how many packets get lost, in each direction.

A packet that gets lost is sent again after 0.2 s or more, and both ends count it (TCP_INFO). A transfer cannot tell:
full queues lose packets on a healthy network, too. Here each connection has one small packet on its way, so nothing
queues, and a lost one holds up only its own connection. Lost answers make the caller send again what had arrived: the
called node says so (a duplicate SACK), which tells the directions apart.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from statistics import median

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.call import CallError, call
from ncclcheck.exchange.probe.channels import reset
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.latency import Callee
from ncclcheck.exchange.probe.tcp_info import Segments, segments_of
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import ProbeOutcome

CHANNEL = "loss"
CONNECTIONS = 4
ROUND_TRIPS = 150  # of one connection
_MESSAGE, _END = b".", b"!"
_COUNTS = struct.Struct("=BIII")  # are they known, and the three of Segments
_LATE_US = 100_000.0  # no queue of a few small packets is that long: the packet was sent again
_ENOUGH_LATE = 12  # round trips with one partner: that packets get lost is clear, and each more takes 0.2 s
_UNTOLD = Missing("timeout", "the called node did not tell what it sent again")
_BATCH = 64


class Exchanged(Struct, frozen=True, forbid_unknown_fields=True):
    """The round trips with one partner: what this node sent (`out`), and what the partner did (`back`)."""

    number: int  # of the round
    outcome: ProbeOutcome
    detail: str = ""
    trips: int = 0
    seconds: float = 0.0
    out: Fact[Segments] = _UNTOLD
    back: Fact[Segments] = _UNTOLD


def echo_and_count(connection: socket.socket) -> None:
    """Send back what comes until the caller asks for the counts; answer with these and hang up."""
    deadline = Deadline(timeouts.ECHO_S)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not deadline.passed:
            connection.settimeout(max(deadline.left(), 0.001))
            data = connection.recv(_BATCH)
            if not data:
                break
            if data.endswith(_END):
                connection.sendall(_packed(segments_of((connection,))))
                connection.recv(1)  # the caller hangs up once it has them
                break
            connection.sendall(data)
    except OSError:
        pass  # the caller has the outcome
    finally:
        connection.close()


def _packed(counted: Fact[Segments]) -> bytes:
    if isinstance(counted, Missing):
        return _COUNTS.pack(0, 0, 0, 0)
    return _COUNTS.pack(1, counted.sent, counted.resent, counted.needless)


class _Connection:
    """One connection: what is left to do on it. State by design."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.times_us = connection, list[float]()
        self.left, self.sent_at = ROUND_TRIPS, 0.0
        self.late = 0  # round trips so long that a packet was sent again
        self.answer = b""
        self.is_ending = self.is_done = False

    def begin(self) -> None:
        """Send the next message, or ask for the counts."""
        self.sent_at = time.perf_counter()
        self.is_ending = self.left == 0
        self.socket.send(_END if self.is_ending else _MESSAGE)

    def read(self, *, is_last: bool) -> None:
        """Read the received data and continue; finish after the last message."""
        data = self.socket.recv(_COUNTS.size)
        if not data:
            raise ConnectionResetError("the peer hung up")
        if self.is_ending:
            self.answer += data
            self.is_done = len(self.answer) >= _COUNTS.size
            return
        self.times_us.append((time.perf_counter() - self.sent_at) * 1e6)
        self.late += self.times_us[-1] >= _LATE_US
        self.left = 0 if is_last else self.left - 1
        self.begin()

    def counted(self) -> Fact[Segments]:
        """Return what the called node counted."""
        if len(self.answer) < _COUNTS.size:
            return _UNTOLD
        is_known, sent, resent, needless = _COUNTS.unpack_from(self.answer)
        return Segments(sent, resent, needless) if is_known else _UNTOLD


def exchange(
    partners: Sequence[tuple[int, Callee]], own_greeting: ProbeGreeting, seconds: float, deadline: Deadline
) -> tuple[Exchanged, ...]:
    """Return the round trips with all partners, (number of the round, peer to call), measured at the same time.

    They take `seconds` at most, and then a second for what is still on its way.
    """
    started = time.monotonic()
    called: dict[int, list[_Connection]] = {number: [] for number, _ in partners}
    failures: dict[int, CallError] = {}
    try:
        for count in range(CONNECTIONS):  # the first of each partner first: calls may take all the time
            for number, callee in partners:
                named = ProbeGreeting(
                    own_greeting.nonce, own_greeting.ticket, channel=f"{CHANNEL}/{number}/{count}"
                )
                try:
                    called[number].append(_Connection(call(callee.target, named, callee.ticket, deadline)))
                except CallError as failed:
                    failures[number] = failed
        _converse(called.values(), seconds)
        taken_s = round(time.monotonic() - started, 4)
        return tuple(
            _summary(number, connections, taken_s)
            if connections
            else Exchanged(number, failures[number].outcome, str(failures[number]))
            for number, connections in called.items()
        )
    finally:
        for connections in called.values():
            for connection in connections:
                reset(connection.socket)


def _converse(partners: Collection[Sequence[_Connection]], seconds: float) -> None:
    """Let all connections go on at once until each has told its counts; at most a second after `seconds`."""
    end, deadline = Deadline(seconds), Deadline(seconds + timeouts.LINKS_LOSS_MORE_S)
    with selectors.DefaultSelector() as selector:
        for connections in partners:
            for connection in connections:
                with suppress(OSError):  # gone already: what was counted on it counts
                    connection.begin()
                    selector.register(connection.socket, selectors.EVENT_READ, (connection, connections))
        while selector.get_map() and not deadline.passed:
            for key, _ in selector.select(deadline.left()):
                connection, of_partner = key.data
                if not _goes_on(connection, is_last=end.passed or _is_clear(of_partner)):
                    selector.unregister(key.fileobj)


def _is_clear(connections: Sequence[_Connection]) -> bool:
    return sum(connection.late for connection in connections) >= _ENOUGH_LATE


def _goes_on(connection: _Connection, *, is_last: bool) -> bool:
    try:
        connection.read(is_last=is_last)
    except OSError:
        return False
    return not connection.is_done


def _summary(number: int, connections: Sequence[_Connection], taken_s: float) -> Exchanged:
    times_us = sorted(time_us for connection in connections for time_us in connection.times_us)
    out = segments_of(connection.socket for connection in connections)
    detail = (
        "no small message came back"
        if not times_us
        else f"{len(times_us)} round trips, median {median(times_us):.0f} us, the longest {times_us[-1] / 1e3:.1f} ms, "
        f"{sum(connection.late for connection in connections)} of 100 ms and more"
    )
    back = _sum(connection.counted() for connection in connections)
    return Exchanged(number, "ok", detail, len(times_us), taken_s, out, back)


def _sum(counts: Iterator[Fact[Segments]]) -> Fact[Segments]:
    """Return the counts of the connections that told them; Missing where none did."""
    known = [counted for counted in counts if not isinstance(counted, Missing)]
    if not known:
        return _UNTOLD
    return Segments(
        sum(counted.sent for counted in known),
        sum(counted.resent for counted in known),
        sum(counted.needless for counted in known),
    )
