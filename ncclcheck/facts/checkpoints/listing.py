"""The files of one checkpoint with their sizes, as far as they can be listed in the time."""

from __future__ import annotations

import math
import os
import time
import zlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG, S_ISSOCK
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.fact import Missing

MOST_FILES = 50_000  # and folders, of one checkpoint
DEPTH = 32


class Files(Struct, frozen=True):
    """Sizes in bytes and times of modification (seconds since the epoch) by name, relative to the folder and with `/`.

    `cut`: why not all of them are here. `foreign`: what is in the place of a file, by name: a pipe, a socket, a device.
    """

    folder: Path
    sizes: dict[str, int]
    times_s: dict[str, float]
    cut: Missing | None = None
    until: float = math.inf  # monotonic: when their content has to be read
    foreign: dict[str, str] = {}

    def is_late(self) -> bool:
        """Return whether the time for reading is over."""
        return time.monotonic() > self.until

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """Return the whole file; None where it is longer than that. Raises OSError."""
        with _opened(self.folder / name) as file:
            data = file.read(limit_bytes + 1)
        return data if len(data) <= limit_bytes else None

    def opened(self, name: str) -> BinaryIO:
        """Open the file for reading. Raises OSError."""
        return _opened(self.folder / name)

    def ends(self, name: str, head_bytes: int, tail_bytes: int) -> tuple[bytes, bytes]:
        """Return the first and the last bytes of the file. Raises OSError."""
        with _opened(self.folder / name) as file:
            head = file.read(head_bytes)
            file.seek(max(file.seek(0, os.SEEK_END) - tail_bytes, 0))
            return head, file.read(tail_bytes)

    @property
    def digest(self) -> int:
        """Return a CRC-32 over all names and sizes."""
        lines = (f"{name}\0{size}\n" for name, size in sorted(self.sizes.items()))
        return zlib.crc32("".join(lines).encode("utf-8", "surrogateescape"))


def files_of(place: Path, until: float, without: Collection[str] = ()) -> Files:
    """Return the files of a folder, or the one file. A link that leads nowhere is no file. Raises OSError.

    `without`: names in the folder that are left out. Links to folders are followed, after everything else and never
    back into a folder that holds them.
    """
    status = place.stat()
    if not S_ISDIR(status.st_mode):
        return single_files(place.parent, {place.name: status}, until)
    no_folders: dict[str, os.stat_result] = {}
    cut: Missing | None = None
    todo = deque([_Folder("", (_identity(status),))])
    for seen, (folder, entry, found) in enumerate(_below(place, todo), 1):
        name = f"{folder.below}{entry.name}"
        if name in without:
            continue
        if not S_ISDIR(found.st_mode):
            no_folders[name] = found
        elif _identity(found) not in folder.above:
            below = _Folder(f"{name}/", (*folder.above, _identity(found)))
            if len(below.above) > DEPTH:
                cut = Missing("unsupported", f"folders of more than {DEPTH} levels were not listed")
            elif entry.is_symlink():
                todo.appendleft(below)
            else:
                todo.append(below)
        if seen >= MOST_FILES:
            cut = Missing(
                "unsupported", f"of more than {MOST_FILES:,} files and folders the rest was not listed"
            )
            break
        if time.monotonic() > until:
            cut = Missing("timeout", f"only {len(no_folders)} files were listed in the time for it")
            break
    return replace(single_files(place, no_folders, until), cut=cut)


def single_files(folder: Path, found: Mapping[str, os.stat_result], until: float) -> Files:
    """Return these files of the folder."""
    regular = {name: status for name, status in found.items() if S_ISREG(status.st_mode)}
    return Files(
        folder,
        {name: status.st_size for name, status in regular.items()},
        {name: status.st_mtime for name, status in regular.items()},
        until=until,
        foreign={name: _kind(status.st_mode) for name, status in found.items() if name not in regular},
    )


def _kind(mode: int) -> str:
    """Return what is neither a file nor a folder, in words."""
    return "a pipe" if S_ISFIFO(mode) else "a socket" if S_ISSOCK(mode) else "a device"


def _below(place: Path, todo: deque[_Folder]) -> Iterator[tuple[_Folder, os.DirEntry[str], os.stat_result]]:
    """Yield what is in each folder, until there is none left to do."""
    while todo:
        folder = todo.pop()
        with os.scandir(place / folder.below) as entries:
            for entry in entries:
                try:
                    found = entry.stat()
                except OSError:  # a link that leads nowhere, or in a circle
                    continue
                yield folder, entry, found


class _Folder(Struct, frozen=True):
    """A folder that is to be listed; `above`: itself and what holds it, by device and inode."""

    below: str
    above: tuple[tuple[int, int], ...]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
