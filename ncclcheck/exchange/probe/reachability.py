"""Which addresses of its peers a node reaches: listeners on every candidate address, and connections to them.

Ports are ephemeral, as NCCL's are (`src/misc/socket.cc` binds port 0). A connection proves itself: the caller shows the
run's nonce, the listener says who it is, so "connected, but to another program" is recognized. Then the caller sends a
packet of full size, alone, and a block of many: where small messages pass and these vanish, the path's MTU is smaller
than the interfaces'. (Alone, because virtual links let the large packets of a segmented block through whole.)

Where the address is reached and the real NCCL of the peer listens there too, its listener is called as well: a firewall
may let our ports through and not that one. It is only connected to; nothing is sent that NCCL would have to take.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.probe.channels import Channels
from ncclcheck.exchange.probe.dial import outcome_of
from ncclcheck.exchange.probe.further_ports import (
    FURTHER_AT_ONCE,
    FURTHER_PEERS,
    Dialled,
    dial_ports,
    listen_further,
    with_further,
)
from ncclcheck.exchange.probe.greeting import (
    LINE_BYTES,
    Heard,
    ProbeGreeting,
    answered_by,
    first_line,
    is_answer,
    is_caller,
    line_of,
    read_line,
)
from ncclcheck.exchange.probe.half_open import half_open
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.snapshot import Probe, ProbeOutcome

BLOCK_BYTES = 64 * 1024
AT_ONCE = 64
NCCL_LISTENER = "the listener that NCCL itself opened"
SEEN_TIMES = 4  # a handshake that is merely slow is not seen this often
_LOOK_RESTS = 30  # a look is followed by a pause that is so many times as long


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """A listener of a node. Kind "nccl" is the one that the real library opened: `room` callers can wait there.

    `further`: more ports at the same address, which accept connections and say nothing.
    """

    interface: str
    address: str
    port: int
    kind: Literal["ours", "nccl"] = "ours"
    room: int = 0
    further: tuple[int, ...] = ()


class Peer(Struct, frozen=True, forbid_unknown_fields=True):
    """A node to reach: its ticket, its name in the report, its listeners."""

    ticket: int
    host: str
    targets: tuple[Target, ...]

    @property
    def ours(self) -> tuple[Target, ...]:
        """Return the listeners of ncclcheck, which answer."""
        return tuple(target for target in self.targets if target.kind == "ours")

    @property
    def nccl(self) -> Target | None:
        """Return the listener of the real library; None where there is none."""
        return next((target for target in self.targets if target.kind == "nccl"), None)

    def for_caller(self, number: int, called: int) -> Peer:
        """Return the peer as that one of its callers, from 0, is to probe it, which calls so many before it.

        NCCL's listener holds only so many. The further ports are for the first ones: of thousands of nodes each has
        several neighbours in the sample.
        """
        has_room = self.nccl is None or number < self.nccl.room
        peer = self if has_room else replace(self, targets=self.ours)
        if max(number, called) < FURTHER_PEERS:
            return peer
        return replace(peer, targets=tuple(replace(target, further=()) for target in peer.targets))


class Listeners:
    """One listener per candidate address, served by a thread until closed.

    Callers are turned away until `admit`, which comes before the ports are told to anybody.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._nonce, self._ticket = "", -1
        self._heard = Heard()
        self._half_open: dict[str, int] = {}
        self.channels = Channels()
        self._watching: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="reach", daemon=True)
        self._thread.start()

    def open(self, candidates: Sequence[tuple[str, str]]) -> tuple[Target, ...]:
        """Listen on each (interface, address); those that cannot be bound are left out."""
        future = asyncio.run_coroutine_threadsafe(self._open(candidates), self._loop)
        return future.result(timeout=timeouts.PROBE_LISTEN_S)

    def admit(self, nonce: str, ticket: int) -> None:
        """Answer callers with this nonce from now on, in the name of this ticket."""
        self._ticket, self._nonce = ticket, nonce

    def unanswered(self) -> tuple[str, ...]:
        """Return addresses whose calls arrived here for a second or more without our answers reaching them."""
        return tuple(sorted(address for address, times in self._half_open.items() if times >= SEEN_TIMES))

    def quiet(self) -> None:
        """Stop looking for unanswered calls, so that it does not disturb measuring."""
        if self._watching is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._watching.cancel)

    def close(self) -> None:
        """Free the ports, and cut off the connections that are open."""
        self.channels.close()
        if self._loop.is_closed():
            return
        with contextlib.suppress(FutureTimeout):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(timeout=timeouts.PROBE_CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=timeouts.PROBE_CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        await asyncio.sleep(
            0
        )  # a connection just accepted gets its transport, which closes it when cancelled
        talks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the turn after

    async def _open(self, candidates: Sequence[tuple[str, str]]) -> tuple[Target, ...]:
        targets = []
        for interface, address in candidates:
            with contextlib.suppress(OSError):
                server = await asyncio.start_server(self._answer, address, 0, limit=LINE_BYTES)
                self._servers.append(server)
                targets.append(Target(interface, address, server.sockets[0].getsockname()[1]))
        if targets:
            further, ports = await listen_further(targets[0].address, self._answer)
            self._servers += further
            targets[0] = replace(targets[0], further=ports)
        watched = frozenset(port for target in targets for port in (target.port, *target.further))
        self._watching = self._loop.create_task(self._watch(watched))
        return tuple(targets)

    async def _watch(self, ports: frozenset[int]) -> None:
        while ports:
            began = time.perf_counter()
            for address in half_open(ports):
                self._half_open[address] = self._half_open.get(address, 0) + 1
            # Of node 0 the kernel lists the connections of all the others: a look may not disturb what it looks at.
            await asyncio.sleep(max(timeouts.PROBE_LOOK_S, _LOOK_RESTS * (time.perf_counter() - began)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.TimeoutError, ValueError, DecodeError, asyncio.IncompleteReadError):
            pass  # a caller that is not of our run, or went away: its own side has the outcome
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await asyncio.wait_for(reader.readline(), timeouts.PROBE_HELLO_S)
        greeting = read_line(line)
        if is_caller(greeting, self._nonce) and self._heard.is_new(greeting):
            own_greeting = ProbeGreeting(self._nonce, self._ticket)
            writer.write(line_of(answered_by(greeting, own_greeting)))
            if greeting.channel:
                self.channels.put(greeting.channel, greeting.ticket, _taken_from(writer))
                return
            for size in (min(max(greeting.segment_bytes, 1), BLOCK_BYTES), BLOCK_BYTES):
                await asyncio.wait_for(reader.readexactly(size), timeouts.PROBE_PATIENT_S)
                writer.write(b"+")
                await asyncio.wait_for(writer.drain(), timeouts.PROBE_BLOCK_S)


def _taken_from(writer: asyncio.StreamWriter) -> socket.socket:
    """Return the connection as a blocking socket that outlives the writer. No data may be on its way here yet."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of a socket has it
    taken: socket.socket = writer.get_extra_info("socket").dup()
    taken.setblocking(True)
    return taken


def probe_peers(
    host: str,
    own_addresses: frozenset[str],
    nonce: str,
    ticket: int,
    peers: Sequence[Peer],
    deadline_s: float,
) -> tuple[Probe, ...]:
    """Return one "tcp" probe and, where that passed, one "mtu" probe per listener of each peer.

    Another "tcp" probe says where not all further ports of a listener that was reached answer.

    Each peer's first listener first: that is NCCL's own interface. What has no outcome by the deadline is an "error".
    NCCL's own listener is probed where ours at the same address was reached, and where there is none of ours.
    """
    calls = [(peer, target) for peer in peers for target in (*peer.ours, *([peer.nccl] if peer.nccl else []))]
    # Stable: every peer's first one, and so on; NCCL's own come last, since they wait for ours.
    calls.sort(key=lambda call: (call[1].kind == "nccl", call[0].targets.index(call[1])))
    late = f"no outcome within {deadline_s:.0f} s"

    async def all_of_them() -> list[list[Probe]]:
        gate, further_gate = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(FURTHER_AT_ONCE)
        caller = _Caller(host, own_addresses, ProbeGreeting(nonce, ticket), gate)
        tasks: list[asyncio.Task[list[Probe]]] = []
        of_ours: dict[tuple[int, str], asyncio.Task[list[Probe]]] = {}
        further: dict[asyncio.Task[list[Probe]], asyncio.Task[Dialled]] = {}
        for peer, target in calls:
            place = peer.ticket, target.address
            if target.kind == "ours":
                of_ours[place] = asyncio.create_task(_probe(caller, peer, target))
                tasks.append(of_ours[place])
                if target.further and target.address not in own_addresses:
                    dialling = dial_ports(target.address, target.further, further_gate)
                    further[of_ours[place]] = asyncio.create_task(dialling)
            else:
                tasks.append(asyncio.create_task(_probe_nccl(caller, peer, target, of_ours.get(place))))
        _, pending = await asyncio.wait((*tasks, *further.values()), timeout=deadline_s)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        probed = [
            [replace(_blank(host, *call), detail=late)] if task in pending else task.result()
            for task, call in zip(tasks, calls, strict=True)
        ]
        for number, task in enumerate(tasks):
            dialled = further.get(task)
            if dialled is not None and dialled not in pending:
                first, *rest = probed[number]
                probed[number] = [*with_further(first, dialled.result()), *rest]
        return probed

    return tuple(probe for probes in asyncio.run(all_of_them()) for probe in probes) if calls else ()


def _blank(host: str, peer: Peer, target: Target) -> Probe:
    blank = Probe("tcp", host, peer.host, target.interface, target.address, target.port, "error")
    return replace(blank, listener="nccl") if target.kind == "nccl" else blank


class _Caller(Struct, frozen=True):
    host: str
    own_addresses: frozenset[str]
    greeting: ProbeGreeting
    gate: asyncio.Semaphore


async def _probe(caller: _Caller, peer: Peer, target: Target) -> list[Probe]:
    blank = _blank(caller.host, peer, target)
    async with caller.gate:
        started = time.perf_counter()
        connection = await _connect(caller, blank)
        if isinstance(connection, Probe):
            return [connection]
        reader, writer = connection
        try:
            return await _talk(caller.greeting, peer, reader, writer, blank, started)
        finally:
            writer.close()
            await asyncio.sleep(0)


async def _probe_nccl(
    caller: _Caller, peer: Peer, target: Target, ours: asyncio.Task[list[Probe]] | None
) -> list[Probe]:
    """Return a probe of NCCL's own listener; none where ours at that address was not reached: the cause is the same."""
    if ours is not None and (await asyncio.shield(ours))[0].outcome != "ok":
        return []
    blank = _blank(caller.host, peer, target)
    async with caller.gate:
        started = time.perf_counter()
        connection = await _connect(caller, blank)
        if isinstance(connection, Probe):
            return [replace(connection, detail=f"{NCCL_LISTENER}: {connection.detail}")]
        microseconds = round((time.perf_counter() - started) * 1e6, 1)
        connection[1].close()
        await asyncio.sleep(0)
        return [replace(blank, outcome="ok", value=microseconds, unit="us", detail=NCCL_LISTENER)]


async def _connect(
    caller: _Caller, blank: Probe
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | Probe:
    """Return a connection to the target of the probe, or the probe with its outcome."""
    if blank.address in caller.own_addresses:
        detail = f"{blank.address} is an address of {caller.host} too"
        return replace(blank, outcome="self", detail=detail)
    try:
        return await asyncio.wait_for(
            asyncio.open_connection(blank.address, blank.port, limit=LINE_BYTES), timeouts.PROBE_CONNECT_S
        )
    except (asyncio.TimeoutError, TimeoutError):
        return replace(blank, outcome="filtered", detail=f"no answer within {timeouts.PROBE_CONNECT_S:.0f} s")
    except OSError as error:
        return replace(blank, outcome=_failed(error), detail=str(error)[:200])


def _failed(error: OSError) -> ProbeOutcome:
    word = outcome_of(error.errno or errno.EIO)
    return "error" if word == "connected" else word


async def _talk(
    greeting: ProbeGreeting,
    peer: Peer,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    blank: Probe,
    started: float,
) -> list[Probe]:
    try:
        segment_bytes = _segment_bytes(writer.get_extra_info("socket"))
        own_line = first_line(replace(greeting, segment_bytes=segment_bytes))
        writer.write(line_of(own_line))
        line = await asyncio.wait_for(reader.readline(), timeouts.PROBE_HELLO_S)
        answer = read_line(line)
    except (asyncio.TimeoutError, OSError, ValueError, DecodeError) as error:
        detail = f"connected, but no greeting of our run came back ({type(error).__name__})"
        return [replace(blank, outcome="wrong-peer", detail=detail)]
    if not is_answer(answer, own_line, greeting.nonce) or answer.ticket != peer.ticket:
        return [replace(blank, outcome="wrong-peer", detail=f"another node answered at {blank.address}")]
    reached = replace(blank, outcome="ok", value=round((time.perf_counter() - started) * 1e6, 1), unit="us")
    sizes = (segment_bytes, BLOCK_BYTES)
    return [reached, await _send_blocks(reader, writer, sizes, replace(blank, kind="mtu"))]


async def _send_blocks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sizes: Sequence[int], blank: Probe
) -> Probe:
    """Send blocks and return whether each arrived. The value is the path MTU of the kernel (ip(7), IP_MTU)."""
    mtu_bytes = _path_mtu_bytes(writer.get_extra_info("socket"))
    blank = replace(blank, value=mtu_bytes, unit="B" if mtu_bytes else "")
    for size in sizes:
        try:
            writer.write(bytes(size))
            arrived = await asyncio.wait_for(reader.read(1), timeouts.PROBE_BLOCK_S)
        except (asyncio.TimeoutError, OSError) as error:
            detail = f"small messages pass, {size} bytes did not arrive within {timeouts.PROBE_BLOCK_S:.0f} s"
            return replace(blank, outcome="stalled", detail=f"{detail} ({type(error).__name__})")
        if not arrived:
            return replace(
                blank, outcome="error", detail="the peer closed the connection before all was through"
            )
    return replace(blank, outcome="ok")


def _segment_bytes(connection: socket.socket) -> int:
    """Return the payload of a full-size packet of this connection (tcp(7), TCP_MAXSEG)."""
    try:
        return min(max(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), 1), BLOCK_BYTES)
    except OSError:
        return 1


def _path_mtu_bytes(connection: socket.socket) -> float | None:
    level, option = (
        (socket.IPPROTO_IPV6, 24) if connection.family == socket.AF_INET6 else (socket.IPPROTO_IP, 14)
    )
    try:
        return float(connection.getsockopt(level, option))  # IPV6_MTU, IP_MTU of linux/in6.h and linux/in.h
    except OSError:
        return None
