"""The processes on all hosts: starts a few at a time, answers their calls, and says how each ended, in one thread."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Literal, TypeAlias

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.line_buffer import LineBuffer
from ncclcheck.model.snapshot import Unreached, UnreachedCause
from ncclcheck.spawn.process import end_with_parent, kill_all
from ncclcheck.spawn.ssh import SSH_FAILED, reason, why_ended

GREETING = "ncclcheck-remote-1 "
AT_ONCE = (
    64  # connections being made at a time: sshd's MaxStartups and the memory of this machine have an end
)
NOISE_LIMIT_BYTES = 256 * 1024
UNREAD_LIMIT_BYTES = 32 * 1024 * 1024  # ours asks one thing at a time, and the longest answer is 8 MiB
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC, errno.EISDIR)
_KEPT_BYTES = 8 * 1024
_READ_BYTES = 1 << 16
Phase: TypeAlias = Literal["waiting", "starting", "there", "over"]


class RemoteGreeting(Struct, frozen=True):
    """The first line of ncclcheck from a host; fields of later versions are ignored."""

    version: str
    schema_version: str


class Host(Struct, frozen=True):
    """One host: its name and rank in reports, how it is started, and the task that it gets once it runs.

    `fallback` starts it without ssh, where it is this very machine; empty elsewhere.
    """

    name: str
    node_rank: int
    command: tuple[str, ...]
    task: bytes
    fallback: tuple[str, ...] = ()


class _Connection:
    """What is known of one host. State by design; only the fleet's thread touches it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.phase: Phase = "waiting"
        self.process: subprocess.Popen[bytes] | None = None
        self.lines = LineBuffer()
        self.errors = bytearray()
        self.noise = bytearray()
        self.noise_bytes = 0
        self.unsent: deque[bytes] = deque()
        self.began = 0.0

    def pipe(self, name: str) -> IO[bytes] | None:
        """Return its standard input, output or error ("in", "out", "err"), while there is one."""
        if self.process is None:
            return None
        return {"in": self.process.stdin, "out": self.process.stdout, "err": self.process.stderr}[name]


class Fleet:
    """All hosts. State: their connections, and which of them could not take part and why.

    `answer` gets each line that a host says, and raises DecodeError for one that is not of ncclcheck.
    """

    def __init__(
        self,
        hosts: Sequence[Host],
        answer: Callable[[bytes], bytes],
        *,
        version: str,
        schema_version: str,
        python: str,
        greeting_s: float,
        environ: Mapping[str, str],
        failed: Callable[[Unreached], None] = lambda _: None,
    ) -> None:
        self._answer, self._failed, self._python = answer, failed, python
        self._version, self._schema_version = version, schema_version
        self._greeting_s, self._environ = greeting_s, dict(environ)
        self._connections = [_Connection(host) for host in hosts]
        self._unreached: dict[int, Unreached] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._serve, name="fleet", daemon=True)

    def start(self) -> None:
        """Start the hosts, in a thread."""
        self._thread.start()

    def unreached(self) -> tuple[Unreached, ...]:
        """Return the hosts that could not take part, or not to the end, by node rank."""
        with self._lock:
            return tuple(unreached for _, unreached in sorted(self._unreached.items()))

    def close(self, patience_s: float = 0.0) -> None:
        """End the processes here and on the hosts; for `patience_s` they may end by themselves."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end and any(
            connection.phase in ("starting", "there") for connection in self._connections
        ):
            time.sleep(timeouts.FLEET_POLL_S / 2)
        self._closing.set()
        self._thread.join(timeouts.FLEET_KILL_S)
        running = [connection.process for connection in self._connections if connection.process is not None]
        for process in running:
            with suppress(OSError):
                os.killpg(
                    process.pid, signal.SIGTERM
                )  # ssh then closes the connection, and the far end its input
        kill_all(running, timeouts.FLEET_KILL_S)
        for connection in self._connections:
            self._forget(connection)

    # the thread

    def _serve(self) -> None:
        try:
            while not self._closing.is_set():
                self._start_some()
                for key, events in self._selector.select(timeouts.FLEET_POLL_S):
                    connection, name = key.data
                    if events & selectors.EVENT_READ:
                        self._read(connection, name)
                    if events & selectors.EVENT_WRITE:
                        self._send(connection)
                self._look()
        finally:
            self._selector.close()

    def _start_some(self) -> None:
        room = AT_ONCE - sum(connection.phase == "starting" for connection in self._connections)
        waiting = [connection for connection in self._connections if connection.phase == "waiting"]
        for connection in waiting[: max(room, 0)]:
            self._launch(connection, connection.host.command)

    def _launch(self, connection: _Connection, command: Sequence[str]) -> None:
        connection.began = time.monotonic()
        try:
            process = subprocess.Popen(
                list(command),
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is ours: we end them in order
                preexec_fn=end_with_parent,
                bufsize=0,
            )
        except OSError as error:
            cause: UnreachedCause = "no-ssh" if error.errno in _NOT_THERE else "not-started"
            self._give_up(connection, cause, f"{command[0]}: {error.strerror}")
            return
        connection.process, connection.phase = process, "starting"
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, (connection, name))
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)

    def _read(self, connection: _Connection, name: str) -> None:
        pipe = connection.pipe(name)
        if pipe is None or pipe.closed:
            return
        try:
            data = os.read(pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(pipe)
            pipe.close()
        elif name == "err":
            connection.errors = (connection.errors + data)[-_KEPT_BYTES:]
        else:
            self._take(connection, data)

    def _take(self, connection: _Connection, data: bytes) -> None:
        try:
            for line in connection.lines.feed(data):
                if connection.phase == "starting":
                    self._greet(connection, line)
                elif line.startswith(b"{"):
                    connection.unsent.append(self._answer(line))
                elif connection.phase == "there":
                    self._hear_noise(connection, line)
                if sum(map(len, connection.unsent)) > UNREAD_LIMIT_BYTES:
                    raise DecodeError("it asks and asks, and does not read the answers")
        except DecodeError as error:
            before = reason(connection.noise.decode(errors="replace"))
            self._give_up(connection, "garbage", f"{error}; before that: {before}" if before else str(error))
        self._send(connection)

    def _greet(self, connection: _Connection, line: bytes) -> None:
        """Read a line before the task: ours says which ncclcheck is there, all before it is what a shell prints."""
        _, mark, rest = line.partition(GREETING.encode())
        if not mark:
            self._hear_noise(connection, line)
            return
        greeting = decode(rest, RemoteGreeting, limit_bytes=_KEPT_BYTES)
        if (greeting.version, greeting.schema_version) != (self._version, self._schema_version):
            text = f"ncclcheck {greeting.version[:40]} is there, {self._version} is here"
            self._give_up(connection, "other-version", text)
            return
        connection.phase = "there"
        connection.unsent.append(connection.host.task + b"\n")

    def _hear_noise(self, connection: _Connection, line: bytes) -> None:
        if not line.strip():
            return
        connection.noise = (connection.noise + line + b"\n")[-_KEPT_BYTES:]
        connection.noise_bytes += len(line)
        if connection.noise_bytes > NOISE_LIMIT_BYTES and connection.phase == "starting":
            raise DecodeError(f"more than {NOISE_LIMIT_BYTES} bytes that ncclcheck did not say")

    def _send(self, connection: _Connection) -> None:
        """Write as much as the pipe takes now; the rest when it takes more."""
        pipe = connection.pipe("in")
        if pipe is None or pipe.closed:
            connection.unsent.clear()
            return
        try:
            while connection.unsent:
                data = connection.unsent.popleft()
                sent = os.write(pipe.fileno(), data)
                if sent < len(data):
                    connection.unsent.appendleft(data[sent:])
                    break
        except BlockingIOError:
            connection.unsent.appendleft(data)
        except OSError:
            connection.unsent.clear()  # it has ended, which is found out elsewhere
        registered = pipe.fileno() in self._selector.get_map()
        if connection.unsent and not registered:
            self._selector.register(pipe, selectors.EVENT_WRITE, (connection, "in"))
        elif registered and not connection.unsent:
            self._selector.unregister(pipe)

    def _look(self) -> None:
        """Give up processes that have ended, and those that have not greeted in time."""
        for connection in self._connections:
            if connection.process is None or connection.phase == "over":
                continue
            code = connection.process.poll()
            if code is not None:
                self._drain(connection)
                self._ended(connection, code)
            elif connection.phase == "starting" and time.monotonic() - connection.began > self._greeting_s:
                text = f"nothing came from ncclcheck there in {self._greeting_s:.0f} s"
                stderr_text = reason(
                    connection.errors.decode(errors="replace") or connection.noise.decode(errors="replace")
                )
                self._give_up(
                    connection, "silent", f"{text}; it said: {stderr_text}" if stderr_text else text
                )

    def _drain(self, connection: _Connection) -> None:
        """Read what it wrote last from the pipes, whose end need not come (ssh may leave a master behind)."""
        for name in ("out", "err"):
            for _ in range(64):
                pipe = connection.pipe(name)
                if pipe is None or pipe.closed:
                    break
                before = len(connection.errors), connection.noise_bytes
                self._read(connection, name)
                if not pipe.closed and (len(connection.errors), connection.noise_bytes) == before:
                    break

    def _ended(self, connection: _Connection, code: int) -> None:
        noise = connection.noise.decode(errors="replace")
        errors = connection.errors.decode(errors="replace")
        if (
            code != SSH_FAILED
        ):  # through a terminal, what programs there say on standard error comes with all else
            errors = f"{noise}\n{errors}"
        if connection.phase == "there":
            if code == 0:
                self._leave(connection)
                return
            cause, text = why_ended(code, errors, noise, self._python)
            cause = "lost" if cause not in ("other-version", "garbage") else cause
            self._give_up(connection, cause, text)
            return
        cause, text = why_ended(code, errors, noise, self._python)
        if connection.host.fallback and cause in _OF_SSH:
            command, connection.host = connection.host.fallback, replaced(connection.host)
            self._forget(connection)
            self._launch(connection, command)
            return
        self._give_up(connection, cause, text)

    def _give_up(self, connection: _Connection, cause: UnreachedCause, text: str) -> None:
        if connection.phase == "over":
            return
        seconds = round(time.monotonic() - connection.began, 1)
        found = Unreached(connection.host.name, connection.host.node_rank, cause, text, seconds)
        with self._lock:
            self._unreached[connection.host.node_rank] = found
        self._leave(connection)
        self._failed(found)

    def _leave(self, connection: _Connection) -> None:
        connection.phase = "over"
        self._forget(connection)
        if connection.process is not None and connection.process.poll() is None:
            with suppress(OSError):
                os.killpg(connection.process.pid, signal.SIGTERM)

    def _forget(self, connection: _Connection) -> None:
        """Close its pipes."""
        if connection.process is None:
            return
        for pipe in (connection.process.stdin, connection.process.stdout, connection.process.stderr):
            if pipe is not None and not pipe.closed:
                with suppress(KeyError, ValueError, RuntimeError):  # not there, or the selector is closed
                    self._selector.unregister(pipe)
                pipe.close()
        connection.lines, connection.errors, connection.noise = LineBuffer(), bytearray(), bytearray()
        connection.unsent.clear()


# Where ssh to this very machine fails in one of these ways, it is simply not set up for that.
_OF_SSH = frozenset({"refused", "denied", "host-key", "closed", "timed-out", "no-route", "name-unknown"})


def replaced(host: Host) -> Host:
    """Return the host without its fallback."""
    return Host(host.name, host.node_rank, host.command, host.task)
