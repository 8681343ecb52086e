"""A store in the files of a folder that nodes share, and how nodes of one run find each other there.

Made for NFS too: a value appears whole, by renaming; what is counted are files created exclusively; nothing is locked.
An NFS client remembers for up to a minute that a name was not there, and believes that until the folder changes as far
as it knows: so before looking again for what was not there, a node changes the folder itself, by a file of its own that
comes and goes (nfs(5), "Directory entry caching"; a client's own change drops what it remembers of the folder).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.store.base import VALUE_LIMIT_BYTES
from ncclcheck.model.codec import encode

_MOST_OTHERS = 64
_MARK_BYTES = 256
_HERE, _FIRST = "here", "here-first"  # the marks of all nodes, and that of node 0
_ALIVE = ".alive"
FIRST_IS_SILENT = "node 0 gave no sign of life"  # the folder itself answers


class FolderView(Struct, frozen=True, forbid_unknown_fields=True):
    """What a node finds in the folder: whether the run of node 0 is there, and which others were ever seen there.

    `first` is the host of node 0, where it joined lately, with or without a run that is alive. `is_open`: any user may
    remove and replace files there.
    """

    found: bool = False
    others: tuple[str, ...] = ()
    filesystem: str = ""
    first: str = ""
    is_open: bool = False


class RunFolder:
    """The values of one run, one file each, in a folder only for its user.

    State: counts, when it looked last, and of a node that is not node 0 the last sign of life of that.
    """

    def __init__(self, path: Path, dead_s: float | None = None) -> None:
        self.path, self._dead_s = path, dead_s
        self._beat: tuple[bytes | None, float] = (None, time.monotonic())
        self._own = f".{secrets.token_hex(8)}"
        self._counts: dict[str, int] = {}
        self._looked_at = 0.0

    def set(self, key: str, value: bytes) -> None:
        """Write the value, which appears complete at once. Raises OSError."""
        write_file(self.path / self._own, value)
        (self.path / self._own).rename(self.path / _name(key))

    def add(self, key: str, amount: int) -> int:
        """Return the counter after adding: each number is a file that only one node can create. Raises OSError."""
        count = self._count(key)
        while amount > 0:
            try:
                os.close(os.open(self._number(key, count + 1), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                amount -= 1
            except FileExistsError:
                pass  # the number of another node
            count += 1
            self._counts[key] = count
        return count

    def read(self, key: str) -> bytes | None:
        """Return the value, or the counter as a number; None while it is not set. Raises OSError."""
        value = self._read_once(key)
        if value is not None or not self._made_fresh():
            return value
        return self._read_once(key)

    def _read_once(self, key: str) -> bytes | None:
        value = read_file(self.path / _name(key), VALUE_LIMIT_BYTES)
        if value is None and (count := self._count(key)):
            return str(count).encode()
        return value

    def _count(self, key: str) -> int:
        count = self._counts.get(key, 0)
        while Path(self._number(key, count + 1)).exists():
            count += 1
            self._counts[key] = count
        return count

    def _number(self, key: str, number: int) -> str:
        return str(self.path / f"{_name(key)}.{number}")

    def _made_fresh(self) -> bool:
        """Make NFS read the folder again; return False where that has just been done."""
        if time.monotonic() - self._looked_at < timeouts.FOLDER_FRESH_S:
            return False
        touch(self.path / f"{self._own}-look")
        self._looked_at = time.monotonic()
        if self._dead_s is not None:
            self._refuse_dead(self._dead_s)
        return True

    def _refuse_dead(self, seconds: float) -> None:
        """Raise OSError where node 0 no longer shows that it is alive, so that this node does not wait for it."""
        beat, now = read_file(self.path / _ALIVE, _MARK_BYTES), time.monotonic()
        if beat != self._beat[0]:
            self._beat = beat, now
        elif now - self._beat[1] > seconds:
            text = f"{FIRST_IS_SILENT} for {seconds:.0f} s"
            raise OSError(errno.ETIMEDOUT, text, str(self.path))


class FolderMember:
    """The shared folder itself, for one process. State: its mark there, the run, and what it saw of others.

    `digest` stands for the job, `token` for the process, in the names of its files. Names that are left of earlier runs
    are never taken for this one: the run is one whose node 0 is alive, which it shows by writing a file ever again.
    """

    def __init__(
        self,
        folder: Path,
        digest: str,
        host: str,
        filesystem: str,
        *,
        leads: bool = False,
        token: str = "",
    ) -> None:
        self._folder, self._digest, self._filesystem = folder, digest, filesystem
        self._token = token or secrets.token_hex(8)
        self._mark = folder / f"{self._prefix(_FIRST if leads else _HERE)}{self._token}"
        self._alive: dict[str, bytes] = {}
        self._met: set[str] = set()
        self._first = ""
        self._beats = 0
        self._is_mine = False
        self.run: RunFolder | None = None
        try:
            write_file(self._mark, host.encode()[:_MARK_BYTES])
        except OSError:  # a full disk takes the name, and not what is in it
            with suppress(OSError):
                self._mark.unlink()
            raise
        self._owner = self._mark.lstat().st_uid  # what this user is called here, which NFS may change

    def open_run(self) -> None:
        """Create the run of this node, which is node 0, so that it can be found. Raises OSError."""
        path = self._folder / f"{self._prefix('run')}{self._token}"
        path.mkdir(mode=0o700)
        self.run, self._is_mine = RunFolder(path), True
        self.beat()
        self._remove_old()

    def beat(self) -> None:
        """Show the other nodes once more that node 0 is alive."""
        if self.run is not None and self._is_mine:
            self._beats += 1
            new = self.run.path / f"{_ALIVE}.new"
            write_file(new, str(self._beats).encode())
            new.rename(self.run.path / _ALIVE)

    def look(self) -> bytes:
        """Return whether the run is found, and which other hosts have a mark here. Raises OSError."""
        # An unpredictable name: in a shared folder another user could have taken a known one.
        touch(self._mark.with_name(f"{self._mark.name}-{secrets.token_hex(8)}"))
        names = sorted(os.listdir(self._folder))  # noqa: PTH208 (names only: one call, also of a large folder)
        if self.run is None:
            self.run = next(
                (RunFolder(path, timeouts.FOLDER_SILENT_S) for name in names if (path := self._living(name))),
                None,
            )
        marks = [name for name in names if name.startswith(self._prefix(_HERE)) and name != self._mark.name]
        self._met |= {host for name in marks[:_MOST_OTHERS] if (host := self._host_of(self._folder / name))}
        for name in marks[:_MOST_OTHERS]:
            if name.startswith(self._prefix(_FIRST)) and self._is_recent(self._folder / name):
                self._first = self._host_of(self._folder / name) or self._first
        others = tuple(sorted(self._met))
        mode = self._folder.stat().st_mode
        is_open = bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX
        return encode(FolderView(self.run is not None, others, self._filesystem, self._first, is_open))

    def close(self) -> None:
        """Remove what this process left in the folder; on node 0 the whole run."""
        with suppress(OSError):
            self._mark.unlink(missing_ok=True)
        if self.run is not None and self._is_mine:
            with suppress(OSError):
                _remove(self.run.path)

    def _remove_old(self) -> None:
        """Remove what earlier runs of this job left here, if it is old and belongs to this user."""
        now = self._mark.lstat().st_mtime
        for path in self._folder.glob(f"{self._prefix('')[:-1]}*"):
            with suppress(OSError):
                found = path.lstat()
                if found.st_uid == self._owner and now - found.st_mtime > timeouts.FOLDER_STALE_S:
                    _remove(path)

    def _is_recent(self, mark: Path) -> bool:
        """Return whether the mark is of about the same time as the own one, and not left of an earlier run."""
        try:
            return self._mark.lstat().st_mtime - mark.lstat().st_mtime < timeouts.FOLDER_RECENT_S
        except OSError:
            return False

    def _host_of(self, mark: Path) -> str:
        """Return whose mark it is; empty for a file of another user or program under such a name."""
        try:
            found = mark.lstat()
            is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == self._owner
            text = read_file(mark, _MARK_BYTES) if is_ours else None
        except OSError:
            return ""  # it went meanwhile, or cannot be read
        return "".join(letter for letter in (text or b"").decode(errors="replace") if letter.isprintable())

    def _living(self, name: str) -> Path | None:
        """Return the run of that name, if it is this user's and its node 0 was alive since the last look."""
        path = self._folder / name
        if not name.startswith(self._prefix("run")):
            return None
        try:
            found = path.lstat()
            beat = read_file(path / _ALIVE, _MARK_BYTES)
        except OSError:
            return None  # on its way, or another user's
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != self._owner or beat is None:
            return None
        return path if self._alive.setdefault(name, beat) != beat else None

    def _prefix(self, kind: str) -> str:
        return f".ncclcheck-{self._digest}-{kind}-"


def remove_left(folder: Path, digest: str, token: str) -> None:
    """Remove what a process with this token left in the folder. Raises OSError."""
    left = list(folder.glob(f".ncclcheck-{digest}-*-{token}*"))
    owners = {path.lstat().st_uid for path in left if f"-{_HERE}-" in path.name}
    for path in left:
        if path.lstat().st_uid in owners:
            _remove(path)


def write_file(path: Path, value: bytes) -> None:
    """Write the value to a new file of this user and close it, so that other nodes can read it. Raises OSError."""
    with suppress(FileNotFoundError):
        path.unlink()
    with os.fdopen(
        os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb"
    ) as file:
        file.write(value)


def read_file(path: Path, limit_bytes: int) -> bytes | None:
    """Return its content; None where there is no such file (any more). Raises OSError, also for more than the limit."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):
            return None
        raise
    with os.fdopen(descriptor, "rb") as file:
        value = file.read(limit_bytes + 1)
    if len(value) > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return value


def touch(path: Path) -> None:
    """Change the folder of `path`: create and remove that file. Raises OSError."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not hold us
    os.close(os.open(path, flags, 0o600))
    path.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if stat.S_ISDIR(path.lstat().st_mode):
        for file in path.iterdir():
            file.unlink(missing_ok=True)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _name(key: str) -> str:
    """Return a file name for the key, which no other key has."""
    return f"_{quote(key, safe='')}"
