"""What is kept of a job that hangs or died: stacks, the kernel's view of each rank, and torch's flight recorder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISFIFO

from ncclcheck.facts.bounded_call import within
from ncclcheck.facts.job.rank_processes import RankProcess, kernel_view
from ncclcheck.timeouts import DUMP_S, PROCESS_POLL_S, WATCH_READ_S

_MOST_FOLDERS = 20
RAS_BEFORE, RAS_NOW = (
    "ras-before.log",
    "ras.log",
)  # two answers of NCCL's RAS: only counts that did not grow tell


def keep(folder: Path, number: int, ranks: Sequence[RankProcess], stacks: Mapping[int, bytes]) -> list[str]:
    """Write the stacks and the kernel's view of each rank to a folder of their own; return the files.

    Only so many of these folders are made: what a job does later is less telling.
    """
    if number > _MOST_FOLDERS:
        return []
    place = folder / f"look-{number}"
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for rank in ranks:
        name = f"pid-{rank.pid}" if rank.rank is None else f"rank-{rank.rank}"
        if rank.pid in stacks:
            (place / f"{name}.stacks.json").write_bytes(stacks[rank.pid])
            files.append(str(place / f"{name}.stacks.json"))
        seen = within(WATCH_READ_S, kernel_view, rank.pid)
        if isinstance(seen, str) and seen:
            (place / f"{name}.proc.txt").write_text(seen, errors="backslashreplace")
            files.append(str(place / f"{name}.proc.txt"))
    return files


def keep_files(folder: Path, number: int, files: Mapping[str, bytes]) -> list[str]:
    """Write the messages of NCCL and the kernel to the folder of this look; return the files."""
    place = folder / f"look-{number}"
    if number > _MOST_FOLDERS or not files:
        return []
    place.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (place / name).write_bytes(data)
    return [str(place / name) for name in files]


def dump_recorders(pipe_prefix: str, ranks: Sequence[RankProcess], folder: Path) -> list[str]:
    """Ask torch of each rank, through its pipe, to write its flight recorder; return the files that were written.

    The pipe is opened without waiting: a rank without NCCL has none, and one that hangs in C may not read it.
    """
    asked = [rank for rank in ranks if pipe_prefix and _asked(Path(f"{pipe_prefix}{rank.rank}.pipe"))]
    before = set(_traces(folder))
    deadline = time.monotonic() + DUMP_S
    while asked and time.monotonic() < deadline and len(set(_traces(folder)) - before) < len(asked):
        time.sleep(PROCESS_POLL_S * 10)
    return sorted(_traces(folder)) if asked else []


def _asked(pipe: Path) -> bool:
    """Write to the pipe; a file or a link that somebody left in its place stays as it is."""
    with suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            return S_ISFIFO(os.fstat(descriptor).st_mode) and os.write(descriptor, b"1\n") > 0
        finally:
            os.close(descriptor)
    return False


def _traces(folder: Path) -> list[str]:
    return [str(path) for path in folder.glob("nccl_trace_rank_*")]
