"""The file of a soak on node 0: one line for each block, on disk before the next one is taken."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.bench.soak.series_folder import FILE, NODES
from ncclcheck.facts.bounded_call import Started, start
from ncclcheck.measure.soak.lines import line_of
from ncclcheck.measure.soak.series_events import SoakJudge
from ncclcheck.model.benchmarks.soak import SoakBlock, SoakEnd, SoakLine, SoakStart
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot

_HELD_UP = "the disk does not answer"


class SoakRecord:
    """The series while it is written. A class because the file stays open, and every line is judged as well."""

    def __init__(self, folder: str, judge: SoakJudge | None = None) -> None:
        """Make the folder, or go on with the series in it (`judge`). Raises OSError."""
        self.judge = judge or SoakJudge(folder)
        self._lost = ""
        self._owed = b""  # the begin of the series, where the disk did not take it
        self._writing: Started[str] | None = None
        self._place = place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        path = place / FILE
        self._descriptor = os.open(path, flags if judge is not None else flags | os.O_EXCL, 0o644)
        _lock(self._descriptor)
        if judge is not None:
            self._mend(path)
        _sync_folder(place)

    def _mend(self, path: Path) -> None:
        """End a line that a kill left unfinished, so that the next one begins where a line begins."""
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    os.write(self._descriptor, b"\n")

    @property
    def lost(self) -> str:
        """Return why lines could not be written; empty while all were."""
        return self._lost

    def keep_nodes(self, snapshot: Snapshot) -> None:
        """Write what is known of the nodes, for a report of the folder."""
        new = self._place / f"{NODES}.new"
        try:
            new.write_bytes(encode(snapshot))
            new.replace(self._place / NODES)
        except OSError as error:
            self._lost = self._lost or f"{error.strerror}"

    def begin(self, first: SoakStart) -> None:
        """Write the first line of the series, or of this part of it."""
        self._write(first)

    def add(self, block: SoakBlock) -> None:
        """Write a block."""
        self._write(block)

    def end(self, end: SoakEnd) -> None:
        """Write how the series ended, and close the file."""
        if self._descriptor < 0:
            return
        self._write(replace(end, at_s=round(time.time(), 3)))
        if not self.is_held_up:  # else the thread that writes has it
            os.close(self._descriptor)
        self._descriptor = -1

    @property
    def is_held_up(self) -> bool:
        """Return whether the disk has not taken the last lines yet."""
        if self._writing is not None and not is_late(self._writing.result(0.0)):
            self._writing = None
        return self._writing is not None

    def _write(self, line: SoakLine) -> None:
        """Judge and write a line. A full disk, or one that hangs, ends no soak: the report is of what was judged."""
        self.judge.feed(line)
        data = line_of(line)
        if isinstance(line, SoakStart):
            self._owed = data  # without it, the file would hold no series
        elif self._owed:
            data = self._owed + data
        if self.is_held_up:
            self._lost = self._lost or _HELD_UP
            return
        self._writing = start(self._put, data)
        failed = self._writing.result(timeouts.SOAK_WRITE_S)
        if is_late(failed):
            self._lost = self._lost or _HELD_UP
            self._owed = b""  # it is on its way
            return
        self._writing = None
        if isinstance(failed, Missing) or failed:
            self._lost = self._lost or (failed.detail if isinstance(failed, Missing) else failed)
        else:
            self._owed = b""

    def _put(self, data: bytes) -> str:
        """Write whole lines and return an empty text, or take back what was written of them and return why."""
        before = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            if data:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, before)
            return f"{error.strerror}"
        return ""


def is_late(found: object) -> bool:
    """Return whether that is what a call that has not ended gives."""
    return isinstance(found, Missing) and found.missing == "timeout"


def _lock(descriptor: int) -> None:
    """Keep every other soak out of the file as long as it is open. Raises OSError where one is in it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise OSError(error.errno, "another soak writes there") from error
    except OSError:
        return  # a file system without locks


def _sync_folder(place: Path) -> None:
    """Make the name of the file last, too."""
    with suppress(OSError):
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
