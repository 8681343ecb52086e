"""How much memory the workers of this node may take before the kernel starts to kill processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def free_bytes(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """What is available on the machine (proc(5), MemAvailable), or less where a control group allows less."""
    return min([psutil.virtual_memory().available, *_allowed(proc, cgroups)])


def _allowed(proc: Path, cgroups: Path) -> Iterator[int]:
    """What each control group of this process leaves (Linux `admin-guide/cgroup-v2.rst`, memory.max)."""
    with suppress(OSError, ValueError):
        own = next(
            line.partition("::")[2]
            for line in (proc / "self/cgroup").read_text().splitlines()
            if line.startswith("0::")
        )
        group = cgroups / own.strip().lstrip("/")
        for folder in (group, *group.parents):
            yield from _left(folder)
            if folder == cgroups:
                return


def _left(group: Path) -> Iterator[int]:
    with suppress(OSError, ValueError):  # no limit there, or the word "max"
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        yield max(0, limit - used)
