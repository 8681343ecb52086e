"""Names the processes that NVML lists on a GPU, and marks those of this run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from ncclcheck.facts.text_files import read_line, read_text
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.gpu import GpuProcess

_PACKAGE = "ncclcheck"
_MOST_ANCESTORS = 64


def described(
    processes: Iterable[GpuProcess], proc: Path = Path("/proc"), own_pid: int | None = None
) -> tuple[GpuProcess, ...]:
    """Return each process with its name from /proc, and `own` where it or an ancestor of it is this run."""
    run_pid = os.getpid() if own_pid is None else own_pid
    return tuple(
        replace(process, name=_name(proc, process.pid), own=_is_own(proc, process.pid, run_pid))
        for process in processes
    )


def _name(proc: Path, pid: int) -> Fact[str]:
    name = read_line(proc / str(pid) / "comm")
    if isinstance(name, Missing) and name.missing == "absent":
        return Missing("absent", "no such process is visible here: it is of another container or of the host")
    return name


def _is_own(proc: Path, pid: int, run_pid: int) -> bool:
    for _ in range(_MOST_ANCESTORS):
        if pid == run_pid:
            return True
        if pid <= 1:
            return False
        command = read_text(proc / str(pid) / "cmdline")
        if isinstance(command, str) and _is_ncclcheck(command.split("\0")):
            return True
        parent = _parent(proc, pid)
        if parent is None:
            return False
        pid = parent
    return False


def _is_ncclcheck(words: list[str]) -> bool:
    """Return whether this is `python -m ncclcheck` or `bin/ncclcheck`: another rank of this run on the same node."""
    return any(
        Path(word).name == _PACKAGE and (number == 0 or words[number - 1] == "-m" or "/" in word)
        for number, word in enumerate(words[:4])
    )


def _parent(proc: Path, pid: int) -> int | None:
    """Return the parent from stat(5): the name in brackets may hold anything, so what follows the last one counts."""
    text = read_text(proc / str(pid) / "stat")
    if isinstance(text, Missing):
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None
