"""Reads the files of a machine below a movable root: `/`, or the folder of a recorded machine, which is not trusted."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing

_TEXT_LIMIT_BYTES = 1 << 20
_MOST_NAMES = 1 << 16
_MOST_LINKS = 40  # as the kernel allows on one path (path_resolution(7))
_LONGEST_LINK_BYTES = 4095
_DECIMAL = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,15}", re.ASCII)


class Folder(Struct, frozen=True):
    """One folder of the machine whose `/` is `root`. `path` is in or below `root` and has no symbolic link in it.

    Links are followed as that machine would: an absolute one begins at `root`, and one that leads out of `root` is
    never followed. Only folders and regular files are opened, so that no pipe or device can hold us up. Where git
    or an archive could not store a symbolic link, it wrote a file with the target as its content; such a file is
    followed like the link that it stands for.
    """

    root: Path
    path: Path

    def shown(self, relative: str = "") -> str:
        """Return the name of a file here as the machine itself would write it."""
        return readable(str(Path("/") / (self.path / relative).relative_to(self.root)))

    def folder(self, relative: str) -> Fact[Folder]:
        """Return the folder that a relative path leads to."""
        try:
            path = self._resolve(relative, to_folder=True)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except (OSError, ValueError) as error:
            return missing_for(error, self.shown(relative))
        return Folder(self.root, path)

    def names(self, relative: str = ".") -> Fact[tuple[str, ...]]:
        """Return the names in a folder in natural order (mlx5_2 before mlx5_10), without hidden ones."""
        place = self.folder(relative)
        if isinstance(place, Missing):
            return place
        found = []
        try:
            with os.scandir(place.path) as entries:
                for entry in entries:
                    found.append(entry.name)
                    if len(found) > _MOST_NAMES:
                        return Missing("error", f"{place.shown()}: more than {_MOST_NAMES} entries")
        except OSError as error:
            return missing_for(error, place.shown())
        return tuple(sorted((name for name in found if not name.startswith(".")), key=natural))

    def exists(self, relative: str) -> bool:
        """Return whether the path leads to something that is there; a dangling link does not."""
        try:
            self._resolve(relative, to_folder=False)
        except (OSError, ValueError):
            return False
        return True

    def has(self, name: str) -> bool:
        """Return whether this folder has an entry of that name, even a dangling link."""
        return os.path.lexists(self.path / name)

    def data(self, relative: str, limit_bytes: int = _TEXT_LIMIT_BYTES) -> Fact[bytes]:
        """Return the first bytes of a regular file."""
        try:
            path = self._resolve(relative, to_folder=False)
            _refuse_all_but_files(os.lstat(path).st_mode)
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                _refuse_all_but_files(os.fstat(descriptor).st_mode)
                return file.read(limit_bytes)
        except (OSError, ValueError) as error:
            return missing_for(error, self.shown(relative))

    def text(self, relative: str) -> Fact[str]:
        """Return the first MiB of a file as text."""
        data = self.data(relative)
        return data if isinstance(data, Missing) else data.decode("utf-8", "replace")

    def line(self, relative: str) -> Fact[str]:
        """Return the text of a file of one line without the white space around it; an empty one says nothing."""
        text = self.text(relative)
        if isinstance(text, Missing):
            return text
        return text.strip("\0 \t\r\n") or Missing("absent", f"{self.shown(relative)}: empty")

    def number(self, relative: str) -> Fact[int]:
        """Return the number in a file, decimal or hexadecimal with 0x; anything else there is an error."""
        text = self.line(relative)
        if isinstance(text, Missing):
            return text
        if _DECIMAL.fullmatch(text):
            return int(text)
        if _HEXADECIMAL.fullmatch(text):
            return int(text, 16)
        return Missing("error", f"{self.shown(relative)}: no number: {text[:80]!r}")

    def link_name(self, name: str) -> Fact[str]:
        """Return the last part of what a link points to, as /sys names drivers and masters.

        The target may be absent.
        """
        try:
            target = self._link(self.path / name, os.lstat(self.path / name).st_mode)
            if target is None:
                raise OSError(errno.EINVAL, "no symbolic link")
            self._resolve(target, to_folder=True)
        except (FileNotFoundError, NotADirectoryError) as error:
            if not self.has(name):
                return missing_for(error, self.shown(name))
        except (OSError, ValueError) as error:
            return missing_for(error, self.shown(name))
        last = readable((target or "").rstrip("/").rpartition("/")[2])
        if last in ("", ".", ".."):
            return Missing("error", f"{self.shown(name)}: a link without a name")
        return last

    def _resolve(self, relative: str, *, to_folder: bool) -> Path:
        """Return the path without links that `relative` leads to from here; OSError when there is none in the tree."""
        here, left, links = self.path, deque(relative.split("/")), 0
        if relative.startswith("/"):
            here = self.root
        while left:
            part = left.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if here == self.root:
                    raise PermissionError(errno.EACCES, "leads out of the tree")
                here = here.parent
                continue
            mode = os.lstat(here / part).st_mode
            is_passed = to_folder or any(left)
            target = self._link(here / part, mode) if is_passed or stat.S_ISLNK(mode) else None
            if target is None:
                here = here / part
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                here = self.root
            left.extendleft(reversed(target.split("/")))
        return here

    def _link(self, path: Path, mode: int) -> str | None:
        """Return the target of the link at `path`, also of one that is stored as a file; None for anything else."""
        if stat.S_ISLNK(mode):
            return str(path.readlink())
        if not stat.S_ISREG(mode) or os.lstat(path).st_size > _LONGEST_LINK_BYTES:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            content = os.fsdecode(file.read(_LONGEST_LINK_BYTES))
        # No attribute of /sys begins so, and those end with a line feed.
        stands_for_link = content.startswith("../") and not set(content) & {"\n", "\0"}
        return content if stands_for_link else None


def machine(root: Path) -> Folder:
    """Return the `/` of the machine below `root`; OSError when that is no folder."""
    path = root.resolve(strict=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root))
    return Folder(path, path)


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that counts digits as numbers, leaving everything else in the order of characters."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part[:18]) if number % 2 else -1, part) for number, part in enumerate(parts)]


def _refuse_all_but_files(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "no regular file")
