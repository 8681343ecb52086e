"""The files of one checkpoint with their sizes, as far as they can be listed in the time."""

from __future__ import annotations

import math
import os
import re
import time
import zlib
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO

from msgspec import Struct

from ncclcheck.model.fact import Missing

MOST_FILES = 50_000
_DEPTH = 4
_STEP = re.compile(r"(?:step|iter(?:ation)?|checkpoint|ckpt)[_=-]?(\d{1,15})", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"(\d{1,15})", re.ASCII)
_VERSION = re.compile(r"-v\d+(?=\.|$)", re.ASCII)  # Lightning's second file of the same name


class Files(Struct, frozen=True):
    """Sizes in bytes by name, relative to the folder and with `/`; `cut`: why not all of them are here."""

    folder: Path
    sizes: dict[str, int]
    changed_s: float  # the newest modification time, seconds since the epoch
    cut: Missing | None = None
    until: float = math.inf  # monotonic: when their content has to be read

    def is_late(self) -> bool:
        """Return whether the time for reading is over."""
        return time.monotonic() > self.until

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """Return the whole file; None where it is longer than that. Raises OSError."""
        with _opened(self.folder / name) as file:
            data = file.read(limit_bytes + 1)
        return data if len(data) <= limit_bytes else None

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


def files_of(place: Path, until: float) -> Files:
    """Return the files of a folder, or the one file. A link that leads nowhere is no file. Raises OSError."""
    status = place.stat()
    if not S_ISDIR(status.st_mode):
        return Files(place.parent, {place.name: status.st_size}, status.st_mtime, until=until)
    sizes: dict[str, int] = {}
    newest = status.st_mtime
    cut: Missing | None = None
    todo = [("", 0)]
    while todo and not cut:
        below, depth = todo.pop()
        with os.scandir(place / below) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                try:
                    found = entry.stat()
                except OSError:  # a link that leads nowhere, or in a circle
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if depth < _DEPTH:
                        todo.append((f"{name}/", depth + 1))
                elif S_ISREG(found.st_mode):
                    sizes[name] = found.st_size
                    newest = max(newest, found.st_mtime)
                if len(sizes) >= MOST_FILES or time.monotonic() > until:
                    cut = Missing("timeout", f"only {len(sizes)} files were listed in the time for it")
                    break
    return Files(place, sizes, newest, cut, until)


def step_of(name: str) -> int | None:
    """Return the number of the step in a checkpoint's name (`global_step100`, `epoch=3-step=1000.ckpt`); else None."""
    plain = _VERSION.sub("", name)
    found = _STEP.findall(plain) or _NUMBER.findall(plain)
    return int(found[-1]) if found else None


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
