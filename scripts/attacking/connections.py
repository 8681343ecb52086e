"""Attacks by connections: bytes at the master port, ncclcheck's own protocol without the key, forged greetings."""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
import time
from contextlib import suppress
from typing import Any

from scripts.attacking.field import Field, again, attack

_EPHEMERAL = range(32768, 61000)


@attack
def garbage(field: Field) -> None:
    """Send random bytes."""
    again(lambda: field.send(field.random.randbytes(1000)))


@attack
def http(field: Field) -> None:
    """Send requests of a browser."""
    again(lambda: field.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))


@attack
def tls(field: Field) -> None:
    """Begin TLS handshakes."""
    again(lambda: field.send(bytes.fromhex("16030102000100") + os.urandom(500)))


@attack
def zeros(field: Field) -> None:
    """Send a flood of zero bytes on each connection."""
    again(lambda: field.send(bytes(1 << 20), times=1000))


@attack
def connects(field: Field) -> None:
    """Open connections and close them at once."""
    again(lambda: field.dial().close(), threads=8)


@attack
def ten_thousand_connections(field: Field) -> None:
    """Hold 10,000 connections that say nothing; open them again when they are closed."""
    hold(field, 10_000, b"")


@attack
def slow_writers(field: Field) -> None:
    """Hold hundreds of connections that send a byte at a time."""
    hold(field, 400, b"{")


def hold(field: Field, most: int, data: bytes) -> None:
    """Keep so many connections open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, most + 1000), hard))
    made: list[socket.socket] = []
    while True:
        with suppress(OSError):
            while len(made) < most:
                made.append(field.dial())
        for number in range(len(made) - 1, -1, -1):
            try:
                made[number].setblocking(False)
                if data:
                    made[number].send(data)
                if made[number].recv(4096) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                continue
            except OSError:
                made.pop(number).close()
        time.sleep(0.2)


@attack
def slow_readers(field: Field) -> None:
    """Send requests of torch's protocol, and never read the answers."""
    ping = struct.pack("<BI", 0, 0x3C85F7CE) + struct.pack("<BI", 9, 1) * 20_000
    open_connections: list[socket.socket] = []

    def once() -> None:
        made = field.dial()
        open_connections.append(made)
        made.sendall(ping)

    again(once, pause_s=0.05)


@attack
def deep_json(field: Field) -> None:
    """Send lines of brackets, nested deeply."""
    again(lambda: field.send(b'{"protocol":' + b"[" * 200_000 + b"\n"))


@attack
def endless_line(field: Field) -> None:
    """Send JSON strings that do not end."""
    again(lambda: field.send(b'{"protocol":"' + b"x" * (1 << 20), times=200))


@attack
def huge_frames(field: Field) -> None:
    """Announce gigabytes in torch's protocol."""
    validate = struct.pack("<BI", 0, 0x3C85F7CE)
    again(lambda: field.send(validate + struct.pack("<BQ", 1, 1 << 40) + b"x" * 1000))


@attack
def many_parts(field: Field) -> None:
    """Begin torch's protocol on many connections that then stay."""
    validate = struct.pack("<BI", 0, 0x3C85F7CE)
    hold(field, 500, validate)


# --- ncclcheck's own protocol, without the key ---


def introduce(field: Field, **said: Any) -> None:
    """Say hello to a store that asks for a key."""
    with suppress(OSError), field.dial() as made:
        made.settimeout(1.0)
        made.recv(4096)
        line = {
            "protocol": "ncclcheck-store-1",
            "challenge": "0" * 32,
            "host": "node2",
            "node_rank": 1,
            "proof": "",
        }
        made.sendall(json.dumps({**line, **said}).encode() + b"\n")
        made.recv(4096)


@attack
def introduced_without_key(field: Field) -> None:
    """Introduce a process that calls itself node2 and has no key."""
    again(lambda: introduce(field))


@attack
def introduced_with_a_guess(field: Field) -> None:
    """Do the same with a proof that is made up."""
    again(lambda: introduce(field, proof=field.random.randbytes(32).hex()))


@attack
def introduced_with_odd_values(field: Field) -> None:
    """Introduce names with control characters and ranks out of range."""
    again(lambda: introduce(field, host="\x1b[2J::error::" + "x" * 2000, node_rank=-(10**9)))


@attack
def greetings_to_all_ports(field: Field) -> None:
    """Send forged greetings to every port of the nodes that listens."""

    def once() -> None:
        for port in _EPHEMERAL:
            for node in field.nodes:
                with suppress(OSError), socket.create_connection((node, port), 0.2) as made:
                    made.sendall(
                        json.dumps({"nonce": "0" * 32, "ticket": 2, "segment_bytes": 1}).encode() + b"\n"
                    )

    again(once, threads=1)
