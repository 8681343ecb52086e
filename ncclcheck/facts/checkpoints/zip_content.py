"""Data that torch.save wrote and that never reached the disk, which the ends of a file do not show: zeros inside it.

To read a checkpoint takes as long as to load it. So only a few places of each file are looked at, and its holes. A
record with zeros there is compared with its checksum, since tensors may hold zeros as well.
"""

from __future__ import annotations

import os
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, BinaryIO, TypeAlias, cast

from msgspec import Struct

from ncclcheck.facts.checkpoints.listing import Files
from ncclcheck.facts.text_files import readable

PLACES = 64  # of a file
MOST_PLACES = 512  # of all files of a checkpoint
PAGE_BYTES = 4096
SMALL_BYTES = 256 << 10  # of a file of which all records are compared
_TIME_SHARE = 0.03  # of what is left for all checkpoints of a folder
_LONGEST_DIRECTORY_BYTES = 32 << 20
_CHUNK_BYTES = 1 << 20
_LOCAL_HEADER, _LOCAL_HEADER_BYTES = b"PK\x03\x04", 30  # PKWARE APPNOTE 4.3.7
_NAME_LENGTH, _EXTRA_LENGTH = slice(26, 28), slice(28, 30)

Part: TypeAlias = tuple[int, int]  # of a file: where a zip begins, and where it ends


class Search(Struct, frozen=True):
    """How many places are looked at in each file, and until when (monotonic)."""

    places: int
    until: float

    @property
    def is_over(self) -> bool:
        """Return whether the time for it is over."""
        return time.monotonic() > self.until


class _Record(Struct, frozen=True):
    """A record of a zip, and where it lies in the file: from its header to that of the next one."""

    begin: int
    end: int
    name: str
    size: int
    checksum: int
    is_stored: bool  # not compressed


def search_of(files: Files, count: int) -> Search:
    """Return how so many files of a checkpoint are searched."""
    now = time.monotonic()
    return Search(min(PLACES, MOST_PLACES // max(1, count)), now + _TIME_SHARE * max(0.0, files.until - now))


def lost_data(files: Files, name: str, search: Search, parts: Sequence[Part] = ()) -> str:
    """Return what of the file was not written; empty where nothing is seen. Raises OSError.

    `parts`: where its zips lie; without any it is one.
    """
    size = files.sizes[name]
    zips = parts or ((0, size),)
    compared: set[_Record] = set()
    with files.opened(name) as file:
        for record in _of_zips(file, zips) if size <= SMALL_BYTES else _with_zeros(file, size, zips, search):
            if search.is_over or not search.places:
                break
            if record not in compared:
                compared.add(record)
                if damage := _damage(file, record, search):
                    return damage
    return ""


def _of_zips(file: BinaryIO, zips: Sequence[Part]) -> Iterator[_Record]:
    for part in zips:
        yield from _records(file, part)


def _with_zeros(file: BinaryIO, size: int, zips: Sequence[Part], search: Search) -> Iterator[_Record]:
    """Yield the records that hold a page of zeros, of so many pages at equal distances and of the first holes."""
    known: dict[Part, list[_Record]] = {}
    for place in _zero_pages(file, size, search):
        for part in zips:
            if part[0] <= place < part[1]:
                if part not in known:
                    known[part] = _records(file, part)
                yield from (record for record in known[part] if record.begin <= place < record.end)
                break


def _zero_pages(file: BinaryIO, size: int, search: Search) -> Iterator[int]:
    pages = size // PAGE_BYTES
    even = (pages * number // (search.places + 1) * PAGE_BYTES for number in range(1, search.places + 1))
    with suppress(OSError):  # nothing is read ahead
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    for place in (*_holes(file, size, search.places), *even):
        if search.is_over:
            return
        page = os.pread(file.fileno(), PAGE_BYTES, place)
        if page and not any(page):
            yield place


def _holes(file: BinaryIO, size: int, most: int) -> Iterator[int]:
    """Yield where the first holes of a sparse file begin: blocks that were never written."""
    place = 0
    with suppress(OSError):  # the file system does not tell
        for _ in range(most):
            hole = os.lseek(file.fileno(), place, os.SEEK_HOLE)
            if hole >= size:
                return
            yield hole
            place = os.lseek(file.fileno(), hole, os.SEEK_DATA)


def _records(file: BinaryIO, part: Part) -> list[_Record]:
    """Return the records in their order; none where it is no zip, which the ends of a file tell."""
    try:
        with zipfile.ZipFile(cast("IO[bytes]", _Window(file, part))) as archive:
            found = sorted(archive.infolist(), key=lambda info: info.header_offset)
            begins = [*(info.header_offset for info in found[1:]), archive.start_dir]
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return []
    return [
        _Record(
            part[0] + info.header_offset,
            part[0] + end,
            info.filename,
            info.file_size,
            info.CRC,
            info.compress_type == zipfile.ZIP_STORED,
        )
        for info, end in zip(found, begins, strict=False)
    ]


def _damage(file: BinaryIO, record: _Record, search: Search) -> str:
    """Return how the record differs from what its directory says.

    torch writes no checksums after `set_crc32_options(False)`.
    """
    name = readable(record.name)
    header = os.pread(file.fileno(), _LOCAL_HEADER_BYTES, record.begin)
    if not header.startswith(_LOCAL_HEADER):
        return f"was not written at byte {record.begin}, where {name} begins"
    if not (record.is_stored and record.checksum):
        return ""
    lengths = (int.from_bytes(header[field], "little") for field in (_NAME_LENGTH, _EXTRA_LENGTH))
    place = record.begin + _LOCAL_HEADER_BYTES + sum(lengths)
    end, checksum = min(place + record.size, record.end), 0
    while place < end:
        if search.is_over:
            return ""
        chunk = os.pread(file.fileno(), min(_CHUNK_BYTES, end - place), place)
        if not chunk:
            break
        checksum = zlib.crc32(chunk, checksum)
        place += len(chunk)
    return (
        ""
        if checksum == record.checksum
        else f"holds data in {name} that was not saved so (its checksum differs)"
    )


class _Window:
    """A part of a file as a file of its own, of which little is read at once: a directory may claim any length."""

    def __init__(self, file: BinaryIO, part: Part) -> None:
        self._file, self._begin, self._size = file, part[0], part[1] - part[0]
        self._place = 0

    def seekable(self) -> bool:
        """Return True, as zipfile asks."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place and return it. Raises ValueError before the begin."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("before the begin")
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises ValueError where they are more than a directory has."""
        left = max(0, self._size - self._place)
        count = left if size < 0 else min(size, left)
        if count > _LONGEST_DIRECTORY_BYTES:
            raise ValueError("longer than any directory")
        data = os.pread(self._file.fileno(), count, self._begin + self._place)
        self._place += len(data)
        return data

    def close(self) -> None:
        """Leave the file open: it is the caller's."""
