"""`--meet-in DIR`: the store of a run in a shared folder, where TCP between the nodes does not work.

The files are touched by a child process alone (`shared_folder_child`), so that a mount that hangs is a value here.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.exchange.deadline import Deadline, polls
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.pipe import Pipe
from ncclcheck.exchange.store.run_folder import FIRST_IS_SILENT, FolderView
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import end_child, surviving_command
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.launch import Launch

_LOOK_BYTES = 1 << 16


class JobFolder(Struct, frozen=True):
    """The folder as this process has it, and which job and host it looks for and is."""

    folder: str
    digest: str
    host: str
    leads: bool


def job_folder(folder: str, launch: Launch, host: str) -> JobFolder:
    """Return the folder with the digest of the job: of what all its processes are told alike."""
    answer = f"{launch.job_id}\n{launch.most_node_ranks}\n{launch.master_addr}\n{launch.master_port}"
    digest = hashlib.sha256(answer.encode()).hexdigest()[:16]
    leads = launch.node_rank == 0 and launch.is_agent
    return JobFolder(os.path.abspath(folder), digest, host, leads)  # noqa: PTH100 (no link is followed, nothing is read)


class FolderClient:
    """The folder, through its child process. `close` must follow. State: that process and the store it serves."""

    def __init__(self, place: JobFolder, port: int) -> None:
        self.place, self._port = place, port
        self.last = FolderView()
        self._store: DeadlineStore | None = None
        self._token = secrets.token_hex(8)
        self._process = self._start("lead" if place.leads else "follow")
        if isinstance(self._process, Missing):
            return
        if self._process.stdin is not None and self._process.stdout is not None:
            self._pipe = Pipe(self._process.stdout.fileno(), self._process.stdin.fileno())
            self._store = DeadlineStore(self._pipe, port)

    def _start(self, role: str) -> subprocess.Popen[bytes] | Missing:
        words = [self.place.folder, self.place.digest, self.place.host, self._token, role]
        try:
            return subprocess.Popen(
                surviving_command("ncclcheck.exchange.store.shared_folder_child", words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            return missing_for(error, sys.executable)

    @property
    def ended(self) -> str:
        """Return how the child process ended before it was told to; empty while it has not."""
        if isinstance(self._process, Missing):
            return ""
        with suppress(
            subprocess.TimeoutExpired
        ):  # its pipe is closed a moment before the kernel has its exit code
            self._process.wait(timeouts.CHILD_DYING_S if self._pipe.ended(0.0) else 0.0)
        exit_code = self._process.returncode
        if exit_code is None:
            return ""
        return (
            f"ended with exit code {exit_code}" if exit_code >= 0 else f"was killed by {_signal(-exit_code)}"
        )

    def look(self) -> Fact[FolderView]:
        """Return what is found in the folder now; Missing where it cannot be used, for good."""
        if isinstance(self._process, Missing):
            return self._process
        if self._store is None:
            return Missing("error", "no pipe to the child process")
        answer = self._store.ask(self._pipe.look)
        if isinstance(answer, Missing):
            return self._in_words(answer)
        try:
            self.last = decode(answer, FolderView, limit_bytes=_LOOK_BYTES)
        except DecodeError as error:
            return Missing("error", str(error))
        return self.last

    def lost(self) -> Missing | None:
        """Return why the folder cannot be used any more; None where it can, also if node 0 is silent in it."""
        why = None if self._store is None else self._store.lost
        return None if why is None or FIRST_IS_SILENT in why.detail else self._in_words(why)

    def _in_words(self, why: Missing) -> Missing:
        if why.missing != "timeout":
            return why
        text = f"{self.place.folder} did not answer within {timeouts.STORE_CALL_S:.0f} s: its mount hangs"
        return Missing("timeout", text)

    def open(self, deadline: Deadline) -> Store | Missing:
        """Return the run's store as soon as node 0 is found; Missing "absent" at the deadline, or why not at all."""
        for _ in polls(deadline):
            found = self.look()
            if isinstance(found, Missing):
                return found
            if found.found and self._store is not None:
                return self._store
        return Missing("absent", f"node 0 did not come to {self.place.folder}")

    def close(self) -> None:
        """Remove what this process left in the folder, unless its mount hangs, and end the child."""
        if isinstance(self._process, Missing):
            return
        was_killed = bool(self.ended)
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeouts.FOLDER_REMOVE_S)
        except subprocess.TimeoutExpired:
            end_child(self._process)
        if self._process.stdout is not None and self._pipe.ended(timeouts.FOLDER_REMOVE_S):
            self._process.stdout.close()
        if was_killed:
            self._remove_left()

    def _remove_left(self) -> None:
        """Remove what the child left that was killed, through another one: a mount may hang."""
        remover = self._start("remove")
        if isinstance(remover, Missing):
            return
        with remover:
            try:
                remover.wait(timeouts.FOLDER_REMOVE_S)
            except subprocess.TimeoutExpired:
                end_child(remover)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
