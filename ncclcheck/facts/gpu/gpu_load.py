"""How busy the GPUs of this node are, read again and again: a child process keeps NVML open, and may hang in it."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import end_child, surviving_command
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing, Why
from ncclcheck.model.job.watched import GpuLoad

_MODULE = "ncclcheck.facts.gpu.gpu_load_child"
_LONGEST_BYTES = 1 << 20


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    gpus: tuple[GpuLoad, ...] = ()
    missing: Why | None = None
    detail: str = ""


class GpuLoads:
    """The child. State: its process, and why it is not asked any more; it is started at the first question."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._given_up: Missing | None = None

    @property
    def pid(self) -> int | None:
        """Return the child's process id; None where there is none."""
        return None if self._process is None else self._process.pid

    def read(self, deadline_s: float) -> tuple[GpuLoad, ...] | Missing:
        """Return the load of each GPU. Where NVML gave none once, it is not asked again."""
        if self._given_up is None:
            try:
                answer = decode(self._asked(time.monotonic() + deadline_s), _Answer)
            except (OSError, ValueError) as error:
                self._given_up = missing_for(error, "NVML")
            except DecodeError as error:
                self._given_up = Missing("error", f"NVML: {error}")
            else:
                if answer.missing is None:
                    return answer.gpus
                self._given_up = Missing(answer.missing, answer.detail)
            self.close()
        return self._given_up

    def close(self) -> None:
        """End the child; one that hangs in the driver is left behind."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            end_child(process)

    def _asked(self, deadline: float) -> bytes:
        """Return the child's next line. Raises OSError where it ended, or does not answer in time."""
        if self._process is None:
            self._process = subprocess.Popen(
                surviving_command(_MODULE, ()),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=None if self._environ is None else dict(self._environ),
                start_new_session=True,
                bufsize=0,
            )
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None  # noqa: S101, PT018 (both are pipes)
        with suppress(BrokenPipeError):  # it has said why before it ended
            questions.write(b"\n")
        line = b""
        while not line.endswith(b"\n") and len(line) < _LONGEST_BYTES:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([answers], [], [], left_s)[0]:
                raise TimeoutError("no answer in time")
            data = os.read(answers.fileno(), 1 << 16)
            if not data:
                raise OSError("the process that asks it has ended")
            line += data
        return line
