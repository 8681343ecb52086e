"""A job's output, kept in a folder while it goes where it would go without us.

Where a relay is needed it is a process of its own that outlives this one. This one holds what the job's pipe is read
from as well, so that another relay can go on where somebody killed the first.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.bounded_call import within
from ncclcheck.facts.child import surviving_command
from ncclcheck.model.fact import Missing
from ncclcheck.spawn.output.relay_child import ASKED, PASSED_ON
from ncclcheck.spawn.output.streams import (
    OwnStream,
    above_standard,
    made_like,
    socket_pair,
    start_of,
    tail,
)
from ncclcheck.timeouts import OUTPUT_FLUSH_S

MOST_BYTES = 8 << 20  # of one file; of each stream there are at most two
_MODULE = "ncclcheck.spawn.output.relay_child"
_MOST_RELAYS = 4
_MOST_FILES = 64
_RANK = "rank-"


class _Relayed(Struct, frozen=True):
    """A stream between the job and us: `source` is read, `inner` is the job's."""

    own: OwnStream
    source: int
    inner: int


class _Beside(Struct, frozen=True):
    """A file that the job writes to by itself, opened once more for reading, and where its output begins."""

    name: str
    descriptor: int
    start: int
    most_bytes: int = 2 * MOST_BYTES


class KeptOutput:
    """The output of one job. State: the streams that are still relayed, the files that are read beside it, the relay.

    `streams`: those of ours that the job shares. Nothing is put between the job and a file.
    """

    def __init__(self, folder: Path, streams: Sequence[OwnStream]) -> None:
        self._folder = folder
        self._relayed: list[_Relayed] = []
        self._beside: list[_Beside] = []
        self._refused: set[int] = set()  # the places in `_relayed` that nobody reads any more
        self._passed_on = threading.Event()
        self._control: socket.socket | None = None
        self._ends = False
        self.why_not = ""  # the streams are not kept
        self._known: set[tuple[int, int]] = set()  # files that are read
        for stream in streams:
            with suppress(OSError):  # a file that may not be read
                if stream.kind == "file":
                    self._read_beside(f"/proc/self/fd/{stream.number}", stream.name, start_of(stream))
                else:
                    self._relayed.append(_Relayed(stream, *made_like(stream)))
        if self._relayed:
            self._begin()

    @property
    def for_job(self) -> Mapping[int, int]:
        """Return which descriptor the job gets as which of its own."""
        return {number: stream.inner for stream in self._relayed for number in stream.own.descriptors}

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the files that are kept, the older one of a stream first."""
        names = [f"{name}{part}.log" for name in ("stdout", "stderr", "output") for part in (".1", "")]
        names += [f"{file.name}.log" for file in self._beside if file.name.startswith(_RANK)]
        return tuple(self._folder / name for name in names if (self._folder / name).is_file())

    def hand_over(self) -> None:
        """Close what only the job may have open, once it was started."""
        for stream in self._relayed:
            os.close(stream.inner)

    def follow_rank(self, pid: int, rank: int | None) -> None:
        """Also keep the files that this process writes its standard output and error to (torchrun --redirects)."""
        name = f"{_RANK}{pid if rank is None else rank}"
        for number, stream in ((1, "stdout"), (2, "stderr")):
            with suppress(OSError, ValueError, IndexError):
                file = f"/proc/{pid}/fd/{number}"
                if stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116 (a link to what may have no name)
                    flags = Path(f"/proc/{pid}/fdinfo/{number}").read_text().partition("flags:")[2].split()[0]
                    is_older = int(flags, 8) & os.O_APPEND
                    self._read_beside(file, f"{name}.{stream}", os.stat(file).st_size if is_older else 0)  # noqa: PTH116

    def _read_beside(self, path: str, name: str, start: int) -> None:
        status = os.stat(path)  # noqa: PTH116 (a link to what may have no name)
        key = status.st_dev, status.st_ino
        if key not in self._known and len(self._known) < _MOST_FILES:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._known.add(key)
            most_bytes = MOST_BYTES // 4 if name.startswith(_RANK) else 2 * MOST_BYTES
            self._beside.append(_Beside(name, above_standard(descriptor), start, most_bytes))

    def keep(self) -> None:
        """Wait until what the job wrote so far is passed on and kept, and copy the end of files that it writes to."""
        self._ask()
        for file in self._beside:
            copied = within(OUTPUT_FLUSH_S, self._copy, file)
            if isinstance(copied, Missing) and copied.missing == "timeout":
                return  # a mount that hangs

    def close(self) -> None:
        """Let the job's output go on without us: its children may still write."""
        self._ask()
        self._ends = True
        if self._control is not None:
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)

    def _copy(self, file: _Beside) -> None:
        pieces = tail(file.descriptor, file.start, file.most_bytes)
        first = next(pieces, b"")
        if first:
            with (self._folder / f"{file.name}.log").open("wb") as copy:
                copy.writelines((first, *pieces))

    def _ask(self) -> bool:
        """Return whether all that was written is passed on."""
        if self._control is None:
            return False
        self._passed_on.clear()
        with suppress(OSError):
            self._control.send(ASKED)
            return self._passed_on.wait(OUTPUT_FLUSH_S)
        return False

    def _begin(self) -> None:
        """Start the relay. Where it does not answer, the job gets its streams as they are."""
        with suppress(OSError):
            process = self._start()
            threading.Thread(target=self._follow, args=(process,), name="output", daemon=True).start()
            if self._ask():
                return
            self._ends = True
            process.kill()
        self.why_not = f"the process that keeps it did not start within {OUTPUT_FLUSH_S:g} s"
        for stream in self._relayed:
            os.close(stream.source)
            os.close(stream.inner)
        self._relayed, self._control = [], None

    def _start(self) -> subprocess.Popen[bytes]:
        ours, theirs = socket_pair()
        open_streams = [stream for number, stream in enumerate(self._relayed) if number not in self._refused]
        targets = [above_standard(os.dup(stream.own.number)) for stream in open_streams]
        words = [
            f"{stream.source}:{target}:{self._folder / stream.own.name}.log"
            for stream, target in zip(open_streams, targets, strict=True)
        ]
        try:
            process = subprocess.Popen(
                surviving_command(_MODULE, [str(MOST_BYTES), str(theirs), *words]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs, *targets, *(stream.source for stream in open_streams)],
            )
        finally:
            os.close(theirs)
            for target in targets:
                os.close(target)
        self._control = socket.socket(fileno=ours)
        return process

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Do what the relay says, and start another one where it was killed."""
        for _ in range(_MOST_RELAYS):
            self._hear([number for number in range(len(self._relayed)) if number not in self._refused])
            if process.wait() == 0 or self._ends:
                break
            with suppress(OSError):
                process = self._start()
        self._passed_on.set()
        if not self._ends:
            for number, stream in enumerate(self._relayed):
                if number not in self._refused:
                    os.close(stream.source)

    def _hear(self, order: list[int]) -> None:
        """Hear the relay, to which the streams of `order` were given, until it ends."""
        control = self._control
        assert control is not None  # noqa: S101
        with suppress(OSError):
            while letters := control.recv(64):
                for letter in letters:
                    if bytes([letter]) == PASSED_ON:
                        self._passed_on.set()
                    else:  # nobody reads this stream: the job learns it by its next write
                        number = order[letter - ord("0")]
                        self._refused.add(number)
                        os.close(self._relayed[number].source)
