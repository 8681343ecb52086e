"""How a watched job is now, for a second terminal: each watcher leaves it in its folder, `--status` reads them all."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

from ncclcheck.cli.files import refuse_hung
from ncclcheck.cli.screen import write_out
from ncclcheck.measure.watching.decision_text import ranks_words
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.exit_code import FOUND, PASS, UNKNOWN

_NAME = "status.json"
_LIMIT_BYTES = 1 << 20
_LATE_LOOKS = 4
_FOUND = ("hang", "died", "stopped", "silent")


class Status(Struct, frozen=True, forbid_unknown_fields=True):
    """One watcher: when it looked (Unix time) and how often it does, its ranks, for how long they stand still.

    `sentence`: what was decided last, "" where nothing was; `led`: node 0 decides.
    """

    host: str
    pid: int
    at_s: float
    look_s: float
    ranks: tuple[int, ...]
    still_s: float
    decision: str = "ok"
    sentence: str = ""
    led: bool = False


def write_status(folder: Path, status: Status) -> None:
    """Leave it in the watcher's folder; a reader never sees half of it."""
    new = folder / f"{_NAME}.new"
    new.write_bytes(encode(status))
    new.replace(folder / _NAME)


def remove_status(folder: Path) -> None:
    """Remove what `write_status` left."""
    for name in (_NAME, f"{_NAME}.new"):
        with suppress(OSError):
            (folder / name).unlink()


def show_status(folder: str) -> int:
    """Print how all watchers of the folder are; return 1 where one found something, 3 where one is late, else 0.

    Raises UsageError where there is none.
    """
    refuse_hung(folder, "--dir")
    found = [
        status for path in sorted(Path(folder).glob(f"*/{_NAME}")) if (status := _read(path)) is not None
    ]
    if not found:
        raise UsageError(f"--dir {folder}: no watcher is at work there")
    now = time.time()
    for status in found:
        write_out(_line(status, now) + "\n")
    if any(status.decision in _FOUND for status in found):
        return FOUND
    return UNKNOWN if any(_late_s(status, now) for status in found) else PASS


def _read(path: Path) -> Status | None:
    """Return what a watcher left, from a plain file only: others may write to the folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                return None
            return decode(file.read(_LIMIT_BYTES + 1), Status, limit_bytes=_LIMIT_BYTES)
    except (OSError, DecodeError):
        return None


def _late_s(status: Status, now: float) -> float:
    """Return how long ago the watcher looked last, 0 where that is no longer than usual."""
    ago_s = max(0.0, now - status.at_s)
    return ago_s if ago_s > max(_LATE_LOOKS * status.look_s, 1.0) else 0.0


def _line(status: Status, now: float) -> str:
    who = f"{status.host} (pid {status.pid})"
    if late_s := _late_s(status, now):
        return f"{who}: no look for {late_s:.0f} s: the watcher was killed, or hangs"
    ranks = ranks_words(status.ranks) if status.ranks else "no rank yet"
    moves = f"nothing moved for {status.still_s:.0f} s" if status.still_s > status.look_s else "advancing"
    by = "node 0 decides" if status.led else "decides alone"
    return f"{who}: {ranks}, {moves}, {by}" + (f"; {status.sentence}" if status.sentence else "")
