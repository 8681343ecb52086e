"""Further ports of a listener, spread over net.ipv4.ip_local_port_range: a firewall may open only a part of it.

The kernel picks one port for each listener of NCCL and Gloo, and a job has dozens. One port that passes says little.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.exchange.probe.dial import outcome_of
from ncclcheck.facts.text_files import read_text
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, ProbeOutcome

FURTHER_PORTS = 4  # one in each quarter of the range
FURTHER_PEERS = 64  # of a node, whose further ports it calls; and so many nodes call those of a node
FURTHER_AT_ONCE = 200
Answer: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Dialled: TypeAlias = Mapping[int, tuple[ProbeOutcome, str]]  # port -> how a connection to it ended, in words
_ATTEMPTS = 8  # to find a free port in a quarter
_RANGE, _RESERVED = (Path(f"/proc/sys/net/ipv4/ip_local_{name}") for name in ("port_range", "reserved_ports"))
_CLOSED: tuple[ProbeOutcome, ...] = ("filtered", "no-route", "refused")  # the worst first


def spread_sockets(address: str) -> list[socket.socket]:
    """Return sockets that are bound to free ports of the address, one in each quarter of the kernel's range."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound: list[socket.socket] = []
    reserved = _ports_in(read_text(_RESERVED))
    for quarter in _quarters(read_text(_RANGE)):
        for _ in range(_ATTEMPTS):
            port = quarter[secrets.randbelow(len(quarter))]
            if port in reserved:
                continue  # the kernel would not pick it either
            listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.bind((address, port))
            except OSError:
                listener.close()
                continue
            bound.append(listener)
            break
    return bound


async def listen_further(address: str, answer: Answer) -> tuple[list[asyncio.Server], tuple[int, ...]]:
    """Serve those sockets with `answer`; return the servers and their ports."""
    servers, ports = [], []
    for bound in spread_sockets(address):
        with suppress(OSError):
            servers.append(await asyncio.start_server(answer, sock=bound))
            ports.append(int(bound.getsockname()[1]))
    return servers, tuple(ports)


def _quarters(text: str | Missing) -> list[range]:
    words = [] if isinstance(text, Missing) else text.split()
    with suppress(ValueError):
        low, high = (int(word) for word in words)
        size = (high + 1 - low) // FURTHER_PORTS
        if size > 1:
            return [range(low + size * number, low + size * (number + 1)) for number in range(FURTHER_PORTS)]
    return []


def _ports_in(text: str | Missing) -> frozenset[int]:
    """Return the ports of a list as the kernel writes it: `4000,5000-5010` (ip-sysctl.rst)."""
    found: set[int] = set()
    for part in [] if isinstance(text, Missing) else text.strip().split(","):
        first, _, last = part.partition("-")
        with suppress(ValueError):
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


async def dial_ports(address: str, ports: Sequence[int], gate: asyncio.Semaphore) -> Dialled:
    """Return how a connection to each of these ports ended, with details."""
    outcomes = await asyncio.gather(*(_connect(address, port, gate) for port in ports))
    return dict(zip(ports, outcomes, strict=True))


def with_further(first: Probe, found: Dialled) -> list[Probe]:
    """Return the probe of a listener with what its further ports say: another one where it is reached and they are not.

    Ports with no outcome say nothing.
    """
    ports = {port: outcome for port, (outcome, _) in found.items()} | {first.port: first.outcome}
    opened = tuple(sorted(port for port, outcome in ports.items() if outcome == "ok"))
    closed = tuple(sorted(port for port, outcome in ports.items() if outcome in _CLOSED))
    if not opened or not closed:
        return [first]
    passed = ", ".join(map(str, opened))
    if first.outcome != "ok":
        detail = f"{first.detail}; {passed} answered"
        return [replace(first, detail=detail, open_ports=opened, closed_ports=closed)]
    port = min(closed, key=lambda port: _CLOSED.index(ports[port]))
    blocked = replace(first, port=port, outcome=ports[port], value=None, unit="")
    detail = f"{found[port][1]}; {passed} answered"
    return [first, replace(blocked, detail=detail, open_ports=opened, closed_ports=closed)]


async def _connect(address: str, port: int, gate: asyncio.Semaphore) -> tuple[ProbeOutcome, str]:
    async with gate:
        try:
            _, writer = await asyncio.wait_for(
                asyncio.open_connection(address, port), timeouts.PROBE_CONNECT_S
            )
        except (asyncio.TimeoutError, TimeoutError):
            return "filtered", f"no answer within {timeouts.PROBE_CONNECT_S:.0f} s"
        except OSError as error:
            word = outcome_of(error.errno or errno.EIO)
            return "error" if word == "connected" else word, str(error)[:200]
        writer.close()
        await asyncio.sleep(0)
        return "ok", ""
