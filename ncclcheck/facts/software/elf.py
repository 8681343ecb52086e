"""Reads what a shared library says of itself in its dynamic section (elf(5)), without loading it."""

from __future__ import annotations

import mmap
import stat
import struct
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.model.fact import Fact, Missing

_LOAD, _DYNAMIC = 1, 2  # p_type of elf.h
_END, _NEEDED, _STRTAB, _STRSZ, _SONAME, _RPATH, _RUNPATH = 0, 1, 5, 10, 14, 15, 29  # d_tag of elf.h
_ELF = b"\x7fELF"
_LITTLE_64 = _ELF + b"\x02\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<qQ")
_MOST_ENTRIES = 4096
_LONGEST_NAME = 4096


class Dynamic(Struct, frozen=True):
    """The machine (e_machine), the name, the libraries it needs, and where the loader is to look for them.

    `strings` is where its names lie in the file: offset and size.
    """

    machine: int
    soname: str
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    strings: tuple[int, int]


def read_dynamic(path: Path) -> Fact[Dynamic]:
    """Return the dynamic section of a 64-bit little-endian ELF file.

    Missing "unsupported": another kind of file, which the loader passes over (32 bit, no regular file, no dynamic
    section). "error": a damaged one, at which it gives up: not ELF at all, or cut short.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a FIFO would hold us
            return Missing("unsupported", f"{path} is no regular file")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(data, str(path))
    except (struct.error, ValueError, IndexError) as error:  # an empty file cannot be mapped
        return Missing("error", f"{path} is cut short or damaged: its headers cannot be read ({error})")
    except OSError as error:
        return missing_for(error, str(path))


def mentions(path: Path, dynamic: Dynamic, symbol: str) -> bool:
    """Return whether a dynamic symbol of that name is defined in the file or wanted by it."""
    offset, size = dynamic.strings
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(b"\0" + symbol.encode() + b"\0", offset, offset + size) >= 0
    except (OSError, ValueError):
        return False


def _read(data: mmap.mmap, name: str) -> Fact[Dynamic]:
    if data[: len(_ELF)] != _ELF:
        return Missing("error", f"{name} is no ELF file: it begins with {data[:8]!r}")
    if data[: len(_LITTLE_64)] != _LITTLE_64:
        return Missing("unsupported", f"{name} is no 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(data)
    machine, first, size, count = header[2], header[5], header[9], header[10]
    segments = [_SEGMENT.unpack_from(data, first + number * size) for number in range(count)]
    end = max((segment[2] + segment[5] for segment in segments if segment[0] == _LOAD), default=0)
    if end > len(data):
        return Missing(
            "error", f"{name} is cut short: it has {len(data)} bytes, and its headers speak of {end}"
        )
    where = next((segment[2] for segment in segments if segment[0] == _DYNAMIC), None)
    if where is None:
        return Missing("unsupported", f"{name} has no dynamic section")
    entries = _entries(data, where)
    table = _offset(segments, dict(entries).get(_STRTAB, 0))
    length = dict(entries).get(_STRSZ, 0)

    def text(offset: int) -> str:
        end = data.find(b"\0", table + offset, table + min(length, offset + _LONGEST_NAME))
        return data[table + offset : max(end, table + offset)].decode("utf-8", "replace")

    def words(tag: int) -> tuple[str, ...]:
        return tuple(text(value) for kind, value in entries if kind == tag)

    def folders(tag: int) -> tuple[str, ...]:
        return tuple(folder for word in words(tag) for folder in word.split(":") if folder)

    soname = next(iter(words(_SONAME)), "")
    return Dynamic(machine, soname, words(_NEEDED), folders(_RPATH), folders(_RUNPATH), (table, length))


def _entries(data: mmap.mmap, where: int) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    while len(entries) < _MOST_ENTRIES:
        tag, value = _ENTRY.unpack_from(data, where + len(entries) * _ENTRY.size)
        if tag == _END:
            break
        entries.append((tag, value))
    return entries


def _offset(segments: list[tuple[int, ...]], address: int) -> int:
    """Return where in the file lies what is loaded at this address."""
    for kind, _, offset, start, _, in_file, _, _ in segments:
        if kind == _LOAD and start <= address < start + in_file:
            return address - start + offset
    raise ValueError(f"address {address:#x} is in no segment")
