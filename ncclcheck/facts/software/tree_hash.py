"""Hashes the names and contents of the files below a folder, or says why not: never a part as the whole."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

BYTES_LIMIT = 512 << 20
FILES_LIMIT = 50_000
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__"})
# A cache says so itself (https://bford.info/cachedir/; pytest, mypy and ruff do), and so does a virtual
# environment (PEP 405), whose packages are compared by version instead.
_MARKS_OF_SKIPPED = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
_BLOCK = 1 << 20
_SHORT = 5  # bytes of a digest, to tell two contents apart


class TooMuchError(Exception):
    """The tree is larger than we are willing to read before a job."""


class _BudgetError(Exception):
    """One file is larger than what is left of the limit."""


def tree_hash(
    root: str, deadline_s: float, bytes_limit: int = BYTES_LIMIT, files_limit: int = FILES_LIMIT
) -> tuple[str, int]:
    """Return SHA-256 over every file of the tree (or over the one file), and how many there were.

    What goes in, in the order of the names: kind, relative name and content of each file, the target of each
    symbolic link, just the name of anything else. Skipped: .git, .hg, .svn, __pycache__, *.pyc, marked caches,
    virtual environments. Empty folders, times and modes do not count. A file that vanishes meanwhile is not there.
    Raises TooMuchError, TimeoutError, or the OSError of what could not be read.
    """
    whole, count = hashlib.sha256(), 0
    for label, kind, digest in _entries_of(root, deadline_s, (bytes_limit, files_limit)):
        count += 1
        whole.update(b"%s %d %s%s" % (kind, len(label), label, digest))
    return whole.hexdigest(), count


def tree_listing(root: str, deadline_s: float) -> dict[str, str]:
    r"""Return a short digest of what the tree hash takes of each file, by its name; raises as that.

    Bytes of a name that are no UTF-8 are written as `\xff`.
    """
    return {
        label.decode("utf-8", "backslashreplace"): (kind + digest[:_SHORT]).hex()
        for label, kind, digest in _entries_of(root, deadline_s, (BYTES_LIMIT, FILES_LIMIT))
    }


def _entries_of(
    root: str, deadline_s: float, limits: tuple[int, int]
) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield name, kind letter and digest of each file, in the order of the names."""
    deadline, (bytes_limit, files_limit) = time.monotonic() + deadline_s, limits
    top, read_bytes = Path(root).resolve(strict=True), 0
    names = _names_below(top, deadline, files_limit) if top.is_dir() else [""]
    for name in sorted(map(os.fsencode, names)):
        try:
            kind, digest, size = _content(top / os.fsdecode(name), bytes_limit - read_bytes, deadline)
        except FileNotFoundError:
            continue
        except _BudgetError:
            raise TooMuchError(f"more than {bytes_limit / (1 << 20):g} MiB") from None
        read_bytes += size
        yield name or os.fsencode(top.name), kind, digest


def _names_below(top: Path, deadline: float, files_limit: int) -> Iterator[str]:
    """Yield the names, relative to `top`, of all that is no folder and is not skipped."""
    pending, count = [""], 0
    while pending:
        folder = pending.pop()
        _check(deadline)
        entries = _entries(top / folder, may_be_gone=bool(folder))
        if folder and _MARKS_OF_SKIPPED & {entry.name for entry in entries}:
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS:
                    pending.append(name)
            elif not entry.name.endswith(".pyc"):
                count += 1
                if count > files_limit:
                    raise TooMuchError(f"more than {files_limit} files")
                yield name


def _entries(folder: Path, *, may_be_gone: bool) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        if may_be_gone:
            return []
        raise


def _content(path: Path, budget: int, deadline: float) -> tuple[bytes, bytes, int]:
    """Return kind letter, digest and size of one entry. A pipe, socket or device is never opened."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return b"l", hashlib.sha256(os.fsencode(path.readlink())).digest(), 0
    if not stat.S_ISREG(status.st_mode):
        return b"o", b"", 0
    if status.st_size > budget:
        raise _BudgetError
    digest, size = hashlib.sha256(), 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
            if size > budget:
                raise _BudgetError
            _check(deadline)
    return b"f", digest.digest(), size


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError("the time for it is used up")
