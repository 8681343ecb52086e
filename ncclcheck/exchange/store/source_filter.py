"""Lets only known addresses connect to a socket that listens: the kernel drops what others send (socket(7)).

Used where what listens knows no credentials itself: torch's TCPStore. A classic filter needs no root, and connections
that are made keep the one they were made under.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
_MOST_INSTRUCTIONS = 4096  # linux/bpf_common.h, BPF_MAXINSNS
_KEEP, _DROP = 0xFFFFFFFF, 0
# linux/filter.h, linux/bpf_common.h
_LOAD_WORD, _LOAD_BYTE, _SHIFT_RIGHT, _IF_EQUAL, _GO, _RETURN = 0x20, 0x30, 0x74, 0x15, 0x05, 0x06
_NETWORK_HEADER, _INTERFACE = -0x100000 & 0xFFFFFFFF, (-0x1000 + 8) & 0xFFFFFFFF
_LOOPBACK = 1  # its number in every network namespace
_SOURCE = {4: 12, 6: 8}  # where it stands in the header
_Instruction: TypeAlias = tuple[int, int, int, int]  # code, instructions to skip if so, if not, operand


def admit_only(port: int, sources: Collection[str]) -> bool:
    """Let only these addresses connect to the port on which this process listens, and this machine itself.

    Return whether the kernel does so: not where there are too many, or it knows no such filters.
    """
    instructions = program(sources)
    if len(instructions) > _MOST_INSTRUCTIONS:
        return False
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    instruction_buffer = ctypes.create_string_buffer(code)
    filter_program = struct.pack("@HP", len(instructions), ctypes.addressof(instruction_buffer))
    is_done = False
    for listening in _listening(port):
        with suppress(OSError):
            listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)
            is_done = True
    return is_done


def program(sources: Collection[str]) -> list[_Instruction]:
    """Return the filter: it accepts packets of these sources, and packets on the loopback interface."""
    known = [_address(source) for source in sources]
    found = {version: {address for address in known if address.version == version} for version in (4, 6)}
    of_4 = list(_of_family(4, [address.packed for address in found[4]]))
    of_6 = list(_of_family(6, [address.packed for address in found[6]]))
    return [
        (_LOAD_WORD, 0, 0, _INTERFACE),
        (_IF_EQUAL, 0, 1, _LOOPBACK),
        (_RETURN, 0, 0, _KEEP),
        (_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
        (_SHIFT_RIGHT, 0, 0, 4),
        (_IF_EQUAL, 0, 1, 6),
        (_GO, 0, 0, len(of_4)),
        *of_4,
        *of_6,
    ]


def _of_family(version: int, addresses: list[bytes]) -> Iterator[_Instruction]:
    for address in sorted(addresses):
        words = struct.unpack(f"!{len(address) // 4}I", address)
        for number, word in enumerate(words):
            yield (_LOAD_WORD, 0, 0, _NETWORK_HEADER + _SOURCE[version] + 4 * number)
            yield (_IF_EQUAL, 0, 2 * (len(words) - number) - 1, word)
        yield (_RETURN, 0, 0, _KEEP)
    yield (_RETURN, 0, 0, _DROP)


def _address(source: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(source.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _listening(port: int) -> Iterator[socket.socket]:
    """Yield this process's sockets that listen on the port."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile, or a socket of another kind
            if not str(entry.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as found:
                is_internet = found.family in (socket.AF_INET, socket.AF_INET6)
                listens = is_internet and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and found.getsockname()[1] == port:
                    yield found
