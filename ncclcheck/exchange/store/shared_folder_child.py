"""Child process: accesses the shared folder for its parent, so that a dead mount blocks only this process.

It outlives its parent for as long as it takes to remove its files: when the parent is gone, its standard input ends.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from ncclcheck import timeouts
from ncclcheck.exchange.store.pipe import answer_call
from ncclcheck.exchange.store.run_folder import FolderMember, RunFolder, remove_left
from ncclcheck.facts.storage.mounts import mount_at
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.line_buffer import LineBuffer

_READ_BYTES = 1 << 16


class FolderBackend:
    """The backend of the parent's store. State: the place, once its first use has opened it."""

    def __init__(self, folder: str, digest: str, host: str, token: str, *, leads: bool) -> None:
        self._folder, self._digest, self._host, self._leads = folder, digest, host, leads
        self._token = token
        self._place: FolderMember | None = None
        self._over = threading.Event()

    def look(self) -> bytes:
        """Return what is found in the folder, which is opened first. Raises OSError."""
        if self._place is None:
            folder = Path(self._folder).resolve(strict=True)
            mount = mount_at(str(folder))
            kind = "" if isinstance(mount, Missing) else mount.type
            of_job = (folder, self._digest, self._host, kind)
            self._place = FolderMember(*of_job, leads=self._leads, token=self._token)
            if self._leads:
                self._place.open_run()
                threading.Thread(target=self._beat, daemon=True).start()
        return self._place.look()

    def set(self, key: str, value: bytes) -> None:
        """Do what the run's folder does."""
        self._run.set(key, value)

    def add(self, key: str, amount: int) -> int:
        """Do what the run's folder does."""
        return self._run.add(key, amount)

    def read(self, key: str) -> bytes | None:
        """Do what the run's folder does."""
        return self._run.read(key)

    def close(self) -> None:
        """Remove what this process left in the folder."""
        self._over.set()
        if self._place is not None:
            self._place.close()

    @property
    def _run(self) -> RunFolder:
        if self._place is None or self._place.run is None:
            raise FileNotFoundError(errno.ENOENT, "node 0 of this run was not found", self._folder)
        return self._place.run

    def _beat(self) -> None:
        while not self._over.wait(timeouts.FOLDER_HEARTBEAT_S):
            try:
                if self._place is not None:
                    self._place.beat()
            except OSError:
                return  # the folder is gone: the others see that no beat comes


def main() -> None:
    """Answer the calls on standard input until it ends, then remove what is ours."""
    folder, digest, host, token, role = sys.argv[1:6]
    if role == "remove":  # the process that worked here before was killed
        with suppress(OSError):
            remove_left(Path(folder), digest, token)
        return
    backend = FolderBackend(folder, digest, host, token, leads=role == "lead")
    lines = LineBuffer()
    try:
        while data := os.read(0, _READ_BYTES):
            for line in lines.feed(data):
                sys.stdout.buffer.write(answer_call(line, backend))
                sys.stdout.buffer.flush()
    except (DecodeError, OSError):
        pass  # the parent is gone, or is not ncclcheck
    finally:
        backend.close()


if __name__ == "__main__":
    main()
