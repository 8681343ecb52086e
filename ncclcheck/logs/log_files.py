"""Read the files that the user names: regular files, gzip, folders, FIFOs, standard input; each once, bounded.

A file that grows is read as far as it reached when it was opened. Holes and long runs of zeros are no text. Whatever
cannot be read becomes a reason.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.logs.recorder.desync import joined
from ncclcheck.logs.recorder.flight_recorder import LONGEST_DUMP_BYTES, Dump, looks_like_a_dump, read_dump
from ncclcheck.logs.timeline import natural
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.events import Log
from ncclcheck.timeouts import READING_TOLD_S

CHUNK_BYTES = 1 << 20
_ZEROS = bytes(CHUNK_BYTES)
_GB = 1e9
MOST_FILES = 20_000
MOST_DEPTH = 16
FIFO_SILENCE_S = 30.0  # nobody writes for so long: the rest is not waited for
MOST_EXPANSION = 300  # times what a gzip holds; logs pack to a twentieth, bombs to a thousandth
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = zlib.MAX_WBITS | 16
STANDARD_INPUT = "-"


class Source(Struct, frozen=True):
    """A file to read and the name that evidence has for it."""

    path: str
    name: str


def read_logs(names: Sequence[str], say: Callable[[str], None] = lambda _: None) -> Log:
    """Return what all of them say, flight recorder dumps among them. Raises UsageError where not one could be read.

    `say` gets a line of progress while a large file is read.
    """
    collector = Collector()
    dumps: list[Dump] = []
    sources, refused = find(names)
    read = 0
    for source in sources:
        why = _read(collector, dumps, source, say)
        if why is None or collector.has_lines_of(source.name):
            read += 1
        if why is not None:
            collector.note_unread(source.name, why)
            refused.append(f"{source.name}: {why}")
    if not read:
        raise UsageError("; ".join(refused[:5]) or "there is no file to read in " + ", ".join(names))
    return joined(collector.log(), dumps)


def find(names: Sequence[str]) -> tuple[list[Source], list[str]]:
    """Return the files that `names` mean, each once, and what cannot be read at all, with the reason."""
    found: dict[tuple[int, int] | str, Source] = {}
    refused: list[str] = []
    for name in names:
        if name == STANDARD_INPUT:
            found.setdefault(STANDARD_INPUT, Source(STANDARD_INPUT, "standard input"))
            continue
        try:
            status = Path(name).stat()
        except (OSError, ValueError) as error:
            refused.append(f"{name}: {_reason(error)}")
            continue
        if stat.S_ISDIR(status.st_mode):
            _search(Path(name), found, refused)
        else:
            found.setdefault((status.st_dev, status.st_ino), Source(name, name))
    return list(found.values()), refused


def _search(folder: Path, found: dict[tuple[int, int] | str, Source], refused: list[str]) -> None:
    """Add the regular files below `folder`, in the order of their names, without following links to folders."""
    top = len(folder.parts)
    for parent, folders, files in os.walk(folder, onerror=lambda error: refused.append(_reason(error))):
        folders.sort(key=natural)
        if len(Path(parent).parts) - top >= MOST_DEPTH:
            folders.clear()
        for file in sorted(files, key=natural):
            path = Path(parent) / file
            try:
                status = path.stat()
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(status.st_mode) and len(found) < MOST_FILES:
                found.setdefault((status.st_dev, status.st_ino), Source(str(path), str(path)))


def _read(collector: Collector, dumps: list[Dump], source: Source, say: Callable[[str], None]) -> str | None:
    """None after the whole file was read, else why not. A flight recorder dump is added to `dumps`."""
    reading = _Reading(lambda done: say(f"reading {source.name}: {done}"))
    try:
        with _opened(source) as stream:
            size = os.fstat(stream.fileno()).st_size
            chunks = reading.chunks(stream, size)
            start = next(chunks, b"")
            if looks_like_a_dump(start):
                return _read_dump(collector, dumps, source.name, _whole(start, chunks)) or reading.unread
            collector.read(source.name, batches(chain((start,), chunks)), size_bytes=size)
    except (OSError, ValueError) as error:
        return _reason(error)
    return reading.unread


def _whole(start: bytes, chunks: Iterator[bytes]) -> bytes:
    """Return the file's bytes, and one more than a dump may have where it has more."""
    parts, left = [start], LONGEST_DUMP_BYTES - len(start)
    while left >= 0 and (chunk := next(chunks, b"")):
        parts.append(chunk)
        left -= len(chunk)
    return b"".join(parts)


def _read_dump(collector: Collector, dumps: list[Dump], name: str, data: bytes) -> str | None:
    """None after the dump was read, else why not; JSON that is no dump after all is read as text."""
    try:
        dump = read_dump(data, name)
    except DecodeError as error:
        if not data.startswith(b"\x80"):
            collector.read(name, batches([data]), size_bytes=len(data))
        return str(error)
    collector.read(name, (), size_bytes=len(data))
    if dump.rank is None:
        return "a flight recorder dump, but of which rank? its name does not end in one (nccl_trace_rank_3)"
    dumps.append(dump)
    return None


def _opened(source: Source) -> BinaryIO:
    if source.path == STANDARD_INPUT:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    # Without O_NONBLOCK the open of a FIFO waits for a writer, perhaps for ever.
    descriptor = os.open(source.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        os.close(descriptor)
        raise OSError("not a file of text")
    return os.fdopen(descriptor, "rb", buffering=0)


class _Reading:
    """The bytes of one stream, unpacked where it is gzip; `unread` says afterwards why the rest was not.

    `tell` gets now and then how far it is.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.unread: str | None = None
        self._tell, self._told_at = tell, time.monotonic()

    def chunks(self, stream: BinaryIO, size: int) -> Iterator[bytes]:
        raw = self._raw(stream, size)
        first = next(raw, b"")
        if first.startswith(_GZIP):
            yield from self._unpacked(first, raw)
        elif first:
            yield first
            yield from raw

    def _raw(self, stream: BinaryIO, size: int) -> Iterator[bytes]:
        mode = os.fstat(stream.fileno()).st_mode
        if stat.S_ISREG(mode):
            yield from self._regular(stream, size)
            return
        waits = stream.fileno() if not os.get_blocking(stream.fileno()) else None
        while True:
            if waits is not None and not select.select([waits], [], [], FIFO_SILENCE_S)[0]:
                self.unread = f"nothing came for {FIFO_SILENCE_S:.0f} s"
                return
            chunk = stream.read(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def _regular(self, stream: BinaryIO, size: int) -> Iterator[bytes]:
        """Yield a file up to that size, without the holes and zeros that a preallocated log or a core file has."""
        while (at := stream.tell()) < size and (chunk := stream.read(min(CHUNK_BYTES, size - at))):
            if time.monotonic() - self._told_at >= READING_TOLD_S:
                self._told_at = time.monotonic()
                self._tell(f"{at / _GB:.1f} of {size / _GB:.1f} GB")
            if chunk == _ZEROS:
                with suppress(OSError):  # this filesystem knows no holes
                    stream.seek(_next_data(stream, size))
            else:
                yield chunk

    def _unpacked(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the text of all members of a gzip file; `unread` is set where it is damaged, cut or a bomb."""
        unpack, in_member = zlib.decompressobj(_GZIP_WINDOW), False
        packed = unpacked = 0
        data = first
        while data:
            packed += len(data)
            while data:
                try:
                    text = unpack.decompress(data, CHUNK_BYTES)
                except zlib.error as error:
                    self.unread = f"damaged gzip: {error}"
                    return
                in_member = not unpack.eof
                unpacked += len(text)
                if unpacked > MOST_EXPANSION * packed + CHUNK_BYTES:
                    self.unread = f"unpacks to more than {MOST_EXPANSION} times its size, which no log does"
                    return
                if text:
                    yield text
                data = unpack.unconsumed_tail
                if unpack.eof:
                    data = unpack.unused_data.lstrip(b"\0")  # some writers pad
                    unpack = zlib.decompressobj(_GZIP_WINDOW)
            data = next(rest, b"")
        if in_member:
            self.unread = "truncated gzip"


def _next_data(stream: BinaryIO, size: int) -> int:
    """Return where the next bytes are that are no hole; the size where there are none. Raises OSError."""
    try:
        return os.lseek(stream.fileno(), stream.tell(), os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size
        raise


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
