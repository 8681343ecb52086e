"""The Python stacks of ranks, read by py-spy from outside; where that is not possible, why."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.job.rank_processes import stat_fields
from ncclcheck.timeouts import STACK_S

NO_PY_SPY = "py-spy is not installed (pip install 'ncclcheck[watch]'): no stacks"


class StacksRead(Struct, frozen=True):
    """What py-spy printed (JSON) of all threads of each process, and why others are missing."""

    documents: dict[int, bytes]
    remarks: tuple[str, ...] = ()


def py_spy() -> str | None:
    """Return the program py-spy: of this Python's environment, else of PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def read_stacks(pids: Iterable[int]) -> StacksRead:
    """Return the stacks of the processes. Each read has a deadline; a stopped process is read without pausing it."""
    program = py_spy()
    if program is None:
        return StacksRead({}, (NO_PY_SPY,))
    documents: dict[int, bytes] = {}
    remarks = []
    for pid in pids:
        try:
            documents[pid] = _dump(program, pid)
        except (OSError, subprocess.SubprocessError) as error:
            remarks.append(f"no stack of process {pid}: {_why(error)}")
    return StacksRead(documents, tuple(remarks))


def _dump(program: str, pid: int) -> bytes:
    running = stat_fields(pid)[:1] not in (["T"], ["t"], ["D"])
    words = [program, "dump", "--json", "--pid", str(pid), *(() if running else ("--nonblocking",))]
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=STACK_S, check=True)
    return ended.stdout


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"py-spy took longer than {STACK_S:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        error_lines = bytes(error.stderr or b"").decode(errors="replace").strip().splitlines()
        text = error_lines[0] if error_lines else f"py-spy ended with {error.returncode}"
        if "ermission" in text or "EPERM" in text:
            text = f"{text} (tracing needs root, CAP_SYS_PTRACE or kernel.yama.ptrace_scope=0)"
        return text
    return str(error)
