"""Processes of nodes as forks of one that has imported torch and ncclcheck (tests/lab/fork_server.py)."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tests.lab.fork_child import is_free
from tests.lab.namespaces import FOLDERS, LabError, new_prefix

REPOSITORY = Path(__file__).resolve().parents[2]
_START_S = 120
_REQUEST_S = 30
_SAME = frozenset({"LANG", "PYTHONPATH", "LD_LIBRARY_PATH"})  # one server for each set of their values


class Place(Struct, frozen=True):
    """The node of a process: its network namespace, its host name and its folder for /dev/shm."""

    namespace: str
    name: str
    shm: Path


class Program(Struct, frozen=True):
    """A command line with what it gets: variables, the folder it starts in, and descriptors beside its streams."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    pass_fds: Sequence[int] = ()

    def can_fork(self) -> bool:
        """Return whether a fork does all that a new interpreter would do."""
        if len(self.argv) < 3 or self.argv[0] != sys.executable:
            return False
        kind, what = self.argv[1:3]
        heavy = what == "ncclcheck" if kind == "-m" else kind == "-c" and "ncclcheck" in what
        return heavy and all(name in _SAME or is_free(name) for name in self.env)


class Forked:
    """A process as `subprocess.Popen` shows it, as far as the lab asks."""

    def __init__(self, pid: int, pidfd: int, status: int) -> None:
        self.pid = pid
        self.pidfd = pidfd  # readable once the process has ended; the caller closes it
        self._status = status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        return self._read(0)

    def wait(self) -> int:
        """Return the exit code of a process that has ended or ends within moments."""
        if (code := self._read(_REQUEST_S)) is None:
            raise LabError(f"process {self.pid} did not end, or its end was not reported")
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process still runs."""
        if self.poll() is None:
            signal.pidfd_send_signal(self.pidfd, number)

    def _read(self, timeout_s: float) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout_s)[0]:
            status = os.read(self._status, 4)
            os.close(self._status)
            if not status:
                raise LabError(f"the fork server ended before process {self.pid}")
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(status, "little"))
        return self.returncode


class Server:
    """One fork server. State: its process, the control socket, and `folder`, its home and the file of its errors."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = FOLDERS / (new_prefix() + "server")  # of a killed run, the next lab removes it
        self.folder.mkdir(mode=0o700)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own = {"HOME": str(self.folder), "PATH": os.environ.get("PATH", os.defpath), "USER": "root"}
        with (self.folder / "errors").open("wb") as errors, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.lab.fork_server", str(theirs.fileno())],
                env={**env, **own},
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the tests, which end it
            )
        self._control = ours
        self._control.settimeout(_START_S)
        try:
            self._answer()
        except BaseException:
            self.close()
            raise
        self._control.settimeout(_REQUEST_S)

    def start(self, place: Place, program: Program, streams: tuple[int, int, int]) -> Forked:
        """Start the program as a fork that enters `place`."""
        request = {
            "namespace": place.namespace,
            "name": place.name,
            "shm": str(place.shm),
            "argv": list(program.argv),
            "env": {**program.env, "PWD": str(program.cwd)},  # the shell sets it where nothing is forked
            "cwd": str(program.cwd),
            "pass_fds": list(program.pass_fds),
        }
        status, report = os.pipe()
        try:
            descriptors = [report, *streams, *program.pass_fds]
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
            pid, pidfd = self._answer()
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(report)
        return Forked(pid, pidfd, status)

    def _answer(self) -> tuple[int, int]:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, 64, 1)
        except TimeoutError:
            message, descriptors = b"", []
        if message == b"ready":
            return 0, -1
        if not message or not descriptors:
            raise LabError(f"the fork server does not answer: {(self.folder / 'errors').read_text()}")
        return int(message), descriptors[0]

    def close(self) -> None:
        """End the server. Its children go on."""
        self._control.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


_servers: dict[tuple[tuple[str, str], ...], Server] = {}
_lock = threading.Lock()


def start(place: Place, program: Program, streams: tuple[int, int, int]) -> Forked:
    """Start what `can_fork` allows, from the server of its variables, which is started when first needed."""
    same = {name: value for name, value in program.env.items() if name in _SAME}
    with _lock:
        key = tuple(sorted(same.items()))
        if key not in _servers:
            _servers[key] = Server(same)
        return _servers[key].start(place, program, streams)


def close() -> None:
    """End all servers of this process."""
    while _servers:
        _servers.popitem()[1].close()
