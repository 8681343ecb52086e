"""What the standard output and standard error of this process are, and what a job gets in their place.

A pipe, a socket and a terminal are relayed: the job gets one of the same kind. A file stays the job's own, and is read
beside it. What goes to another device (/dev/null), or is closed, is left alone.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import termios
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["pipe", "socket", "terminal", "file"]
_LAST_STANDARD = 2
_NAMES = {(1,): "stdout", (2,): "stderr", (1, 2): "output"}


class OwnStream(Struct, frozen=True):
    """One open file of ours behind standard output, standard error, or both. `number` is the first of them."""

    descriptors: tuple[int, ...]
    kind: Kind

    @property
    def number(self) -> int:
        """Return the descriptor."""
        return self.descriptors[0]

    @property
    def name(self) -> str:
        """Return what its copy is named after."""
        return _NAMES[self.descriptors]


def own_streams() -> tuple[OwnStream, ...]:
    """Return what standard output and standard error are; both are one stream where they are the same file."""
    found: dict[tuple[int, int], tuple[Kind, list[int]]] = {}
    for number in (1, 2):
        with suppress(OSError):
            status = os.fstat(number)
            kind = _kind(number, status.st_mode)
            if kind is not None:
                found.setdefault((status.st_dev, status.st_ino), (kind, []))[1].append(number)
    return tuple(OwnStream(tuple(numbers), kind) for kind, numbers in found.values())


def made_like(stream: OwnStream) -> tuple[int, int]:
    """Return two new descriptors: to read what the job writes, and for the job. Raises OSError."""
    if stream.kind == "terminal":
        reader, writer = _terminal_like(stream.number)
    elif stream.kind == "socket":
        reader, writer = socket_pair()
    else:
        reader, writer = os.pipe()
    return above_standard(reader), above_standard(writer)


def socket_pair() -> tuple[int, int]:
    """Return the two ends of a new pair of sockets."""
    first, second = socket.socketpair()
    return above_standard(first.detach()), above_standard(second.detach())


def above_standard(descriptor: int) -> int:
    """Return the descriptor, moved where it is 0, 1 or 2, since we were started with one of these closed."""
    if descriptor > _LAST_STANDARD:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LAST_STANDARD + 1)
    os.close(descriptor)
    return moved


def start_of(stream: OwnStream) -> int:
    """Return where in the file the job's output will begin."""
    if fcntl.fcntl(stream.number, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(stream.number).st_size
    return os.lseek(stream.number, 0, os.SEEK_CUR)


def _kind(number: int, mode: int) -> Kind | None:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "terminal" if stat.S_ISCHR(mode) and os.isatty(number) else None


def _terminal_like(number: int) -> tuple[int, int]:
    """Return a pseudo-terminal of the same size and settings; the line ends are left to the terminal behind it."""
    reader, writer = os.openpty()
    attributes = termios.tcgetattr(number)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(writer, termios.TCSANOW, attributes)
    fcntl.ioctl(writer, termios.TIOCSWINSZ, fcntl.ioctl(number, termios.TIOCGWINSZ, bytes(8)))
    return reader, writer


def tail(descriptor: int, start: int, most_bytes: int) -> Iterator[bytes]:
    """Yield the last bytes of a file from `start` on, at most so many."""
    end = os.fstat(descriptor).st_size
    at = max(start if start <= end else 0, end - most_bytes)  # it was cut meanwhile: all of it is new
    while at < end and (data := os.pread(descriptor, min(1 << 20, end - at), at)):
        at += len(data)
        yield data
