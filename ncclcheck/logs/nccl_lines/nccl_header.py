"""NCCL's own prefix of a line: which process speaks, and where its message begins.

Source: NCCL debug.cc: `host:pid:tid [cudaDev] NCCL INFO message`, for WARN `[time stamp] host:pid:tid [cudaDev]
file.cc:line (function) NCCL WARN message`; the host is cut at its first dot.
"""

from __future__ import annotations

import re

from msgspec import Struct

_HEADER = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,254}) ?:(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) \[ ?-?\d{1,10}\] ?"
    r"(?P<source>\S{1,200}:\d{1,6}(?: \(\w{1,100}\))? )?$"
)
_START = re.compile(
    rb"[A-Za-z0-9][\w.-]{0,254}:\d{1,10}:\d{1,10} \[-?\d{1,10}\] (?:\S{1,200}:\d{1,6}(?: \(\w{1,100}\))? )?NCCL "
)

LEVEL_INFO = b"NCCL INFO "
_HEADERS = (LEVEL_INFO, b"NCCL WARN ", b"NCCL version ")


class Header(Struct, frozen=True):
    """`host` and `pid` of the process, the source file it names (WARN lines), and what stood before."""

    host: str
    pid: int
    source: str
    before: str


def parse(text: str) -> Header | None:
    """Return the header in what stands before `NCCL INFO` or `NCCL WARN`; None where it is damaged."""
    match = _HEADER.search(text[-700:])
    if match is None:
        return None
    before = text[: max(len(text) - 700, 0) + match.start()]
    return Header(match["host"], int(match["pid"]), (match["source"] or "").strip(), before)


def torn_apart(line: bytes) -> list[bytes]:
    """Split a line in which several processes wrote over one another into messages with a header each."""
    starts = [match.start() for match in _START.finditer(line)]
    if len(starts) < 2:  # noqa: PLR2004
        return [line]
    ends = [*starts[1:], len(line)]
    return [line[: starts[1]], *(line[start:end] for start, end in zip(starts[1:], ends[1:], strict=True))]


def is_torn(line: bytes, headers: int) -> bool:
    """Return True if so many of NCCL's headers stand in the line; `NCCL Dev 0` is no header."""
    return sum(map(line.count, _HEADERS)) >= headers


def name_before(line: bytes, position: int) -> bytes:
    """`host:pid:tid`, with what is glued to it, in what stands before NCCL's level; empty where there is none."""
    bracket = max(line.rfind(b" [", 0, position), 0)
    return line[line.rfind(b" ", 0, bracket) + 1 : bracket]
