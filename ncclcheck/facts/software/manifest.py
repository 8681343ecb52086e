"""Lists what is below a folder in bounded time, with a sample that two nodes with the same files have in common.

Names are listed without looking at the files, so that a million of them take about two seconds. Only the files of the
sample are looked at, and only some of those are read, and of each only the beginning and the end.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import stat
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Manifest, PathEntry
from ncclcheck.model.formats.name_sketch import NameSketch

SAMPLED = 512
READ = 32
PART_BYTES = 64 * 1024
EVERY_HASH = 1 << 32
_LOOK_AT_CLOCK = 256
_CHECKSUM = 1 << 64
_OF_THE_FILESYSTEM = b"lost+found/"  # of ext4, for root alone


class Times(Struct, frozen=True):
    """How long single calls took, in ms."""

    stat_ms: tuple[float, ...] = ()
    read_ms: tuple[float, ...] = ()


class Listing(Struct):
    """Where the listing stands: the folder or file that is asked now, and the folders that could not be listed."""

    at: bytes = b""
    unlisted: int = 0
    is_cut: bool = False  # folders were left when the time for listing was used up


def read_manifest(
    root: bytes, list_until: float, read_until: float, listing: Listing | None = None
) -> tuple[Manifest, Times]:
    """Return the manifest of a folder, or of one file, and how quickly its files answered.

    Both ends are times of the monotonic clock. Raises OSError where the folder itself cannot be listed; folders below
    it that cannot be are counted, and left out. Symbolic links count by their name and are not followed.
    """
    listing = Listing() if listing is None else listing
    smallest: list[tuple[int, bytes]] = []
    sketch = NameSketch()
    files = checksum = 0
    complete = True
    for name, number in (
        _names(root, listing, list_until)
        if stat.S_ISDIR(Path(os.fsdecode(root)).stat().st_mode)
        else [(b"", 0)]
    ):
        files += 1
        checksum = (checksum + number + 1) % _CHECKSUM
        sketch.add(name, number)
        item = (-number, name)
        if len(smallest) < SAMPLED:
            heapq.heappush(smallest, item)
        elif item > smallest[0]:
            heapq.heapreplace(smallest, item)
        if files % _LOOK_AT_CLOCK == 0 and time.monotonic() > list_until:
            complete = False
            break
    complete = complete and not listing.is_cut
    names = [name for _, name in sorted(smallest, reverse=True)]
    largest = -smallest[0][0] if files > len(smallest) else EVERY_HASH
    sample, times = _looked_at(root, names, read_until, listing)
    return Manifest(files, checksum, complete, sample, largest, sketch.cells(), listing.unlisted), times


def _names(root: bytes, listing: Listing, until: float) -> Iterator[tuple[bytes, int]]:
    """Yield the names below the folder that are no folders, each with the CRC-32 of it.

    Folders are not entered twice.
    """
    pending = [b""]
    while pending:
        if time.monotonic() > until:  # folders without files never reach the other check of the time
            listing.is_cut = True
            return
        folder = listing.at = pending.pop()
        start = zlib.crc32(folder)
        try:
            entries = os.scandir(root + b"/" + folder)
        except FileNotFoundError:
            if folder:
                continue  # removed meanwhile
            raise
        except OSError:
            if folder:
                listing.unlisted += folder != _OF_THE_FILESYSTEM
                continue
            raise
        with entries:
            yield from _entries(entries, folder, start, pending, listing)


def _entries(
    entries: Iterator[os.DirEntry[bytes]], folder: bytes, start: int, pending: list[bytes], listing: Listing
) -> Iterator[tuple[bytes, int]]:
    try:
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                pending.append(folder + name + b"/")
            else:
                yield folder + name, zlib.crc32(name, start)
    except OSError:
        listing.unlisted += 1


def _looked_at(
    root: bytes, names: list[bytes], until: float, listing: Listing
) -> tuple[tuple[PathEntry, ...], Times]:
    late = Missing("timeout", "the time for it was used up")
    unread = Missing("absent", "not among the files that are read")
    entries, stats, reads = [], [], []
    for number, name in enumerate(names):
        path = root + b"/" + name if name else root
        listing.at = name
        size: Fact[int] = late
        digest: Fact[str] = late if number < READ else unread
        if time.monotonic() < until:
            began = time.perf_counter()
            try:
                status = os.lstat(path)
                stats.append((time.perf_counter() - began) * 1e3)
                is_file = stat.S_ISREG(status.st_mode)
                size = status.st_size if is_file else Missing("unsupported", "no regular file")
                if number < READ:
                    began = time.perf_counter()
                    digest = (
                        _digest(path, status.st_size)
                        if is_file
                        else Missing("unsupported", "no regular file")
                    )
                    reads.append((time.perf_counter() - began) * 1e3)
            except OSError as error:
                size = size if isinstance(size, int) else missing_for(error)
                digest = missing_for(error)
        entries.append(PathEntry(readable(os.fsdecode(name)), zlib.crc32(name), size, digest))
    return tuple(entries), Times(tuple(stats), tuple(reads))


def _digest(path: bytes, size: int) -> str:
    """Return SHA-256 over the size, the first and the last 64 KiB; what is no regular file by now is not opened."""
    digest = hashlib.sha256(b"%d\n" % size)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        digest.update(file.read(PART_BYTES) or b"")
        if size > PART_BYTES:
            file.seek(max(size - PART_BYTES, PART_BYTES))
            digest.update(file.read(PART_BYTES) or b"")
    return digest.hexdigest()
