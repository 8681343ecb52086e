"""The process that carries a job's output on: from the job's pipe or pseudo-terminal to ours, and a copy to files.

It outlives the watcher, so that the job never writes to a pipe that nobody reads. Arguments: the most bytes of a file,
a socket to the watcher, and SOURCE:TARGET:FILE of each stream, by descriptor. Standard library only: it stays small.

The watcher sends `?` and gets `!` once all that the job wrote so far is passed on. When nobody reads a target any more,
the watcher gets the number of the stream, so that it closes its own source too: then the job gets EPIPE, as without.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ncclcheck.timeouts import OUTPUT_FLUSH_S, OUTPUT_POLL_S

ASKED, PASSED_ON = b"?", b"!"
_CHUNK = 1 << 16
_ATOMIC = select.PIPE_BUF  # a write of so much is not mixed with that of another process
_MOST_WAITING = 8 << 20  # of the copy, where the disk is slow: beyond that the copy has a gap
_IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGPIPE,
)


class Copy:
    """A copy in a file and the one before it, written by a thread: a disk that hangs holds nothing up."""

    def __init__(self, path: str, most_bytes: int) -> None:
        self._path, self._most = path, most_bytes
        self._waiting: deque[bytes] = deque()
        self._wake = threading.Event()
        self._taken = self._done = self._size = 0
        self._file = -1
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def is_written(self) -> bool:
        """Return whether nothing waits to be written."""
        return self._taken == self._done

    def take(self, data: bytes) -> None:
        """Have these bytes written; drop them where too many wait."""
        if self._taken - self._done + len(data) <= _MOST_WAITING:
            self._taken += len(data)
            self._waiting.append(data)
            self._wake.set()

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._waiting:
                data = self._waiting.popleft()
                with suppress(OSError):  # a full disk costs the copy, nothing else
                    self._write(data)
                self._done += len(data)

    def _write(self, data: bytes) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._file).st_size
        if self._size + len(data) > self._most and self._size:
            stem, dot, suffix = self._path.rpartition(".")
            os.replace(self._path, f"{stem}.1{dot}{suffix}")  # noqa: PTH105 (pathlib costs memory)
            os.close(self._file)
            self._file = -1
            self._write(data)
            return
        self._size += len(data)
        while data:
            data = data[os.write(self._file, data) :]


class Stream:
    """One stream of the job: carried on by a thread until the job has closed it, or nobody reads it."""

    def __init__(self, source: int, target: int, copy: Copy) -> None:
        self.source, self.target, self.copy = source, target, copy
        self.is_over = self.is_refused = False
        self._is_busy = False

    @property
    def is_passed_on(self) -> bool:
        """Return whether all that was written so far is on its way to the reader, and in the file."""
        return self.is_over or (not self._pending() and not self._is_busy and self.copy.is_written)

    def carry(self) -> None:
        """Carry until the end."""
        poll = select.poll()
        poll.register(self.source, select.POLLIN)
        while True:
            poll.poll()
            self._is_busy = True  # before the read: what is pending or busy is not passed on
            try:
                data = os.read(self.source, _CHUNK)
            except OSError:  # EIO: nobody has the terminal open any more
                data = b""
            if not data:
                return
            self.copy.take(data)
            if not _written(self.target, data):
                self.is_refused = True
                return
            self._is_busy = False

    def resize(self) -> None:
        """Give a pseudo-terminal the size of the terminal."""
        with suppress(OSError):
            size = fcntl.ioctl(self.target, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self.source, termios.TIOCSWINSZ, size)

    def _pending(self) -> int:
        try:
            return int(struct.unpack("i", fcntl.ioctl(self.source, termios.FIONREAD, bytes(4)))[0])
        except OSError:
            return 0


def main() -> None:
    """Carry all streams until each has ended."""
    for (
        number
    ) in _IGNORED:  # the terminal's and the launcher's signals are for the job: when it ends, this ends
        signal.signal(number, signal.SIG_IGN)
    most_bytes, control, *words = sys.argv[1:]
    arguments = [word.split(":", 2) for word in words]
    streams = [
        Stream(int(source), int(target), Copy(file, int(most_bytes))) for source, target, file in arguments
    ]
    watcher = socket.socket(fileno=int(control))

    def resize(*_: object) -> None:
        for stream in streams:
            stream.resize()

    signal.signal(signal.SIGWINCH, resize)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    lock, left = threading.Lock(), [len(streams)]

    def carry(number: int, stream: Stream) -> None:
        stream.carry()
        os.close(stream.source)
        os.close(stream.target)
        if stream.is_refused:
            with suppress(OSError):
                watcher.send(b"%d" % number)
        _await(lambda: stream.copy.is_written)
        stream.is_over = True
        with lock:
            left[0] -= 1
            if not left[0]:
                os._exit(0)

    for place, stream in enumerate(streams):
        threading.Thread(target=carry, args=(place, stream), daemon=True).start()
    _answer(watcher, streams)
    while True:
        signal.pause()


def _answer(watcher: socket.socket, streams: list[Stream]) -> None:
    """Answer the watcher until it is gone."""
    with suppress(OSError):
        while watcher.recv(1):
            _await(lambda: all(stream.is_passed_on for stream in streams))
            watcher.send(PASSED_ON)


def _await(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + OUTPUT_FLUSH_S
    while not is_so() and time.monotonic() < deadline:
        time.sleep(OUTPUT_POLL_S)


def _written(target: int, data: bytes) -> bool:
    """Write it, whole lines at a time where others write there too; return False where nobody reads it any more."""
    while data:
        end = len(data) if len(data) <= _ATOMIC else data.rfind(b"\n", 0, _ATOMIC) + 1 or _ATOMIC
        try:
            data = data[os.write(target, data[:end]) :]
        except BlockingIOError:  # the reader shares it, and wants no waiting
            poll = select.poll()
            poll.register(target, select.POLLOUT)
            poll.poll()
        except OSError:
            return False
    return True
