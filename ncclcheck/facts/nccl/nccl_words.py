"""Reads NCCL's own words: the unique id, the version number, the log lines about its choice of interface."""

from __future__ import annotations

import re
import socket
import struct

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing

UNIQUE_ID_BYTES = 128
_FIRST_OF_NEW_SCHEME = 10_000
# An IPv4 address may follow an alias label with a colon of its own (eth0:1); IPv6 has no labels. No interface name
# holds a colon.
_BOOTSTRAP = re.compile(
    r"Bootstrap ?: Using\s+(?P<interface>[^\s:]+)"
    r"(?:(?::[^:<]+)?:(?P<ipv4>\d+\.\d+\.\d+\.\d+)|:(?P<ipv6>[0-9a-fA-F:.]+)(?:%[^<]+)?)<\d+>"
)
_WARNING = re.compile(r"NCCL WARN (?P<text>.*)")


class SocketAddress(Struct, frozen=True):
    """The address in a unique id, which every other rank connects to."""

    address: str
    port: int
    scope_id: int = 0


def decode_unique_id(blob: bytes) -> Fact[SocketAddress]:
    """Return the address at byte 8 of an ncclUniqueId: magic (8 bytes), then a sockaddr_in or sockaddr_in6.

    From ncclBootstrapHandle in NCCL's src/include/bootstrap.h and the sockaddr union of src/include/socket.h; the same
    from 2.18 to 2.32.
    """
    if len(blob) < UNIQUE_ID_BYTES:
        return Missing("error", f"a unique id has {UNIQUE_ID_BYTES} bytes, this one {len(blob)}")
    family = struct.unpack_from("=H", blob, 8)[0]
    port = struct.unpack_from("!H", blob, 10)[0]
    if family == socket.AF_INET:
        return SocketAddress(socket.inet_ntop(socket.AF_INET, blob[12:16]), port)
    if family == socket.AF_INET6:
        scope_id = struct.unpack_from("=I", blob, 32)[0]
        return SocketAddress(socket.inet_ntop(socket.AF_INET6, blob[16:32]), port, scope_id)
    return Missing("unsupported", f"the unique id holds an address of family {family}")


def version_text(number: int) -> str:
    """Return the version behind NCCL_VERSION_CODE: 22809 is 2.28.9; up to 2.8 it was 2708 for 2.7.8 (nccl.h)."""
    if number < _FIRST_OF_NEW_SCHEME:
        return f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


class BootstrapLine(Struct, frozen=True):
    """NCCL's line about the interface it uses: its name without alias label, address, and words."""

    interface: str
    address: str
    text: str


def bootstrap_line(log: str) -> BootstrapLine | None:
    """Return the choice in `Bootstrap : Using eth0:10.0.0.1<0>` (to 2.23) or `Bootstrap: Using ...` (since 2.24)."""
    match = _BOOTSTRAP.search(log)
    if match is None:
        return None
    return BootstrapLine(match["interface"], match["ipv4"] or match["ipv6"], match[0])


def warnings(log: str) -> tuple[str, ...]:
    """Return the texts of NCCL's WARN lines, in order, without host, process and time in front."""
    return tuple(match["text"].strip() for match in _WARNING.finditer(log))
