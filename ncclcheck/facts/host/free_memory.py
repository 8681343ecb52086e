"""How much memory the workers of this node may take before the kernel starts to kill processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

# The files that hold limit and use of a group, and the line of its memory.stat that counts what can be dropped at once.
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def free_bytes(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that is available here (proc(5), MemAvailable), or less where a control group allows less."""
    return min([_available(), *_allowed(proc, cgroups)])


def _available() -> int:
    """Return MemAvailable; where a hardened container hides /proc/meminfo, sysinfo(2)'s free memory, which is less."""
    try:
        return int(psutil.virtual_memory().available)
    except (OSError, psutil.Error):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _allowed(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield how much memory each control group of this process leaves.

    Linux `admin-guide/cgroup-v2.rst`, memory.max, and `admin-guide/cgroup-v1/memory.rst`, 5 and 2.
    """
    with suppress(OSError, ValueError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            number, controllers, group_path = line.split(":", 2)
            if number == "0" and not controllers:
                yield from _upwards(cgroups, group_path, _VERSION_2)
            elif "memory" in controllers.split(","):
                yield from _upwards(cgroups / "memory", group_path, _VERSION_1)


def _upwards(top: Path, group_path: str, names: tuple[str, str, str]) -> Iterator[int]:
    group = top / group_path.strip().lstrip("/")
    for folder in (group, *group.parents):
        yield from _left(folder, *names)
        if folder == top:
            return


def _left(group: Path, most: str, used: str, droppable: str) -> Iterator[int]:
    with suppress(OSError, ValueError):  # no limit there, or the word "max"
        limit = int((group / most).read_text())
        yield max(0, limit - int((group / used).read_text()) + _cached(group, droppable))


def _cached(group: Path, name: str) -> int:
    """Return how many bytes of file cache the kernel drops before it kills a process; 0 where it does not say."""
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0
