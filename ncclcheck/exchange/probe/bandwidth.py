"""Short TCP transfers over several streams at once: the sender fills them, the receiver counts what arrives.

The receiver leads: it says go when its own last round is over, and resets the connections when it has seen enough,
which ends the sender and empties its queues. So no interface carries two transfers in one direction, without any clock
in common. Payload is discarded in the kernel (tcp(7), MSG_TRUNC), each stream has a thread, and system calls run
outside the interpreter's lock: on links beyond about 20 Gbit/s the CPU may still set the value, which is said with it.
The sender binds no address, as NCCL does not: the kernel's routes decide, and what it chose is reported.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.busy import (
    Moment,
    busiest_core,
    busiest_thread,
    core_ticks,
    moment_of,
    sleep_until,
)
from ncclcheck.exchange.probe.call import CallError, call
from ncclcheck.exchange.probe.channels import Channels, reset
from ncclcheck.exchange.probe.greeting import ProbeGreeting
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.probe.tcp_info import Segments, segments_of
from ncclcheck.measure.links.rate import rate_in
from ncclcheck.measure.links.rounds import STREAMS
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import ProbeOutcome

GO = b"!"
_CHUNK_BYTES = 1 << 20
_PAYLOAD = bytes(_CHUNK_BYTES)
_NOT_BUSY: Missing = Missing("absent", "nothing was transferred")


class Window(Struct, frozen=True):
    """How long a transfer is warmed up, and then measured."""

    warm_up_s: float
    window_s: float


class Sent(Struct, frozen=True, forbid_unknown_fields=True):
    """The sender's side of one transfer: the address it was sent from, and how busy the sender was."""

    number: int  # of the round
    outcome: ProbeOutcome
    detail: str = ""
    source_address: str = ""
    cpu_share: Fact[float] = _NOT_BUSY
    core_share: Fact[float] = _NOT_BUSY
    segments: Fact[Segments] = _NOT_BUSY


class Received(Struct, frozen=True, forbid_unknown_fields=True):
    """The receiver's side: the rate of the payload in the measured seconds, and how busy the receiver was."""

    number: int
    outcome: ProbeOutcome
    detail: str = ""
    bytes_per_s: float = 0.0
    seconds: float = 0.0
    cpu_share: Fact[float] = _NOT_BUSY
    core_share: Fact[float] = _NOT_BUSY


def channel_of(number: int, stream: int) -> str:
    """Return the name under which a stream of a round arrives."""
    return f"bandwidth/{number}/{stream}"


def send(
    number: int,
    target: Target,
    own_greeting: ProbeGreeting,
    peer_ticket: int,
    window: Window,
    start: Deadline,
) -> Sent:
    """Send from the moment the receiver says go, at the latest at `start`, until it has enough."""
    connections: list[socket.socket] = []
    try:
        for stream in range(STREAMS):
            named = ProbeGreeting(own_greeting.nonce, own_greeting.ticket, channel=channel_of(number, stream))
            connections.append(call(target, named, peer_ticket, start))
        source = str(connections[0].getsockname()[0])
        return _fill(number, connections, source, window, start)
    except CallError as failed:
        return Sent(number, failed.outcome, str(failed))
    except OSError as error:
        return Sent(number, "error", str(error)[:200])
    finally:
        for connection in connections:
            reset(connection)


def _fill(
    number: int, connections: Sequence[socket.socket], source: str, window: Window, start: Deadline
) -> Sent:
    began = threading.Event()
    streams = [_Filling(connection, began, start) for connection in connections]
    for stream in streams:
        stream.thread.start()
    if not began.wait(start.left()):
        _end(streams)
        return Sent(number, "stalled", "the receiver never said go", source)
    load = _Load(streams, window.warm_up_s)
    end = Deadline(window.window_s + timeouts.LINKS_RECEIVER_S)
    for stream in streams:
        stream.thread.join(end.left())
    _end(streams)
    return Sent(number, "ok", "", source, load.cpu_share(), load.core_share(), segments_of(connections))


class _Stream:
    """One stream: a thread that does its part until it is cut off, and the moment when it ended."""

    def __init__(self, connection: socket.socket, began: threading.Event, name: str) -> None:
        self.connection, self.began = connection, began
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.ended: Moment | None = None

    def _run(self) -> None:
        with suppress(OSError):  # the other end hung up, or we were cut off
            self.work()
        self.ended = moment_of(threading.current_thread())

    def work(self) -> None:
        """Work on the connection until that is shut down, which raises OSError here."""
        raise NotImplementedError


class _Filling(_Stream):
    def __init__(self, connection: socket.socket, began: threading.Event, start: Deadline) -> None:
        super().__init__(connection, began, "send")
        self._start = start

    def work(self) -> None:
        self.connection.settimeout(max(self._start.left(), 0.001))
        if self.connection.recv(1) == GO:
            self.connection.settimeout(None)  # the thread that waits for this one shuts the connection down
            self.began.set()
            while True:
                self.connection.send(_PAYLOAD)


class _Load:
    """How busy the threads of the streams and this machine's cores are, after the warm-up."""

    def __init__(self, streams: Sequence[_Stream], warm_up_s: float) -> None:
        sleep_until(time.monotonic() + warm_up_s)
        self.began = time.monotonic()
        self._streams, self._cores = streams, core_ticks()
        self._threads = [moment_of(stream.thread) for stream in streams]

    def cpu_share(self) -> Fact[float]:
        """Return the share of the busiest thread, up to its end."""
        ends = [stream.ended or moment_of(stream.thread) for stream in self._streams]
        return busiest_thread(self._threads, ends)

    def core_share(self) -> Fact[float]:
        """Return the share of the busiest core, up to now."""
        return busiest_core(self._cores, core_ticks())


def _end(streams: Sequence[_Stream]) -> None:
    """End the threads: shut down the connections in which they wait."""
    for stream in streams:
        with suppress(OSError):  # the peer was first
            stream.connection.shutdown(socket.SHUT_RDWR)
    for stream in streams:
        stream.thread.join(timeouts.LINKS_STREAM_CLOSE_S)


def receive(number: int, channels: Channels, peer_ticket: int, window: Window, start: Deadline) -> Received:
    """Count what the peer sends: warm up from the first byte on, then measure. It must call before `start` ends."""
    connections: list[socket.socket] = []
    try:
        for stream in range(STREAMS):
            arrived = channels.take(channel_of(number, stream), peer_ticket, start)
            if arrived is None:
                return Received(number, "error", "the sender never called")
            connections.append(arrived)
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.send(GO)
        return _count(number, connections, window, start)
    except OSError as error:
        return Received(number, "error", str(error)[:200])
    finally:
        for connection in connections:
            reset(connection)


def _count(number: int, connections: Sequence[socket.socket], window: Window, start: Deadline) -> Received:
    began = threading.Event()
    streams = [_Counting(connection, began, "receive") for connection in connections]
    for stream in streams:
        stream.thread.start()
    if not began.wait(start.left() + window.warm_up_s):  # one that called late has time to send, too
        _end(streams)
        return Received(number, "stalled", "connected, but nothing came")
    load = _Load(streams, window.warm_up_s)
    sleep_until(load.began + window.window_s)
    ended = time.monotonic()
    core_share = load.core_share()
    _end(streams)
    rate = rate_in(sorted(arrival for stream in streams for arrival in stream.arrivals), load.began, ended)
    if rate <= 0:
        return Received(number, "stalled", "data came at first, and then no more")
    return Received(number, "ok", "", rate, round(ended - load.began, 4), load.cpu_share(), core_share)


class _Counting(_Stream):
    """Records how many bytes arrived when."""

    def __init__(self, connection: socket.socket, began: threading.Event, name: str) -> None:
        super().__init__(connection, began, name)
        self.arrivals: list[tuple[float, int]] = []

    def work(self) -> None:
        room = bytearray(_CHUNK_BYTES)  # never written: MSG_TRUNC discards the bytes and tells their number
        while count := self.connection.recv_into(room, 0, socket.MSG_TRUNC):
            self.arrivals.append((time.monotonic(), count))
            if not self.began.is_set():
                self.began.set()
