"""Reads what the control groups of this process allow it: CPU time, CPUs, memory, processes; v1 and v2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct

from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Cgroup

# v1 has no word for "no limit": it writes the largest number of bytes that fits (mm/memcontrol.c, PAGE_COUNTER_MAX).
_NO_LIMIT_BYTES = 1 << 62
_OCTAL = re.compile(r"\\([0-7]{3})", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_MOST_LEVELS = 64
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
N = TypeVar("N", int, float)


class Hierarchy(Struct, frozen=True):
    """Where the process's group of one controller is: the folder of the hierarchy, and the group below it."""

    unified: bool  # v2
    mount: str
    group: str

    def levels(self) -> Iterator[str]:
        """Yield the folders from the process's own group up to the root of what is mounted."""
        parts = [part for part in self.group.split("/") if part][-_MOST_LEVELS:]
        for count in range(len(parts), -1, -1):
            yield "/".join([self.mount.strip("/"), *parts[:count]])


def read_cgroup(here: Folder) -> Fact[Cgroup]:
    """Return the limits, of each the tightest from the process's own group up to the root that is visible.

    A limit is Missing where the group's file is not readable; it is None where no group on the way has one. Groups
    above a cgroup namespace are not visible, so the true limit may be tighter.
    """
    groups, mounts = here.text("proc/self/cgroup"), here.text("proc/self/mountinfo")
    if isinstance(groups, Missing):
        return groups
    if isinstance(mounts, Missing):
        return mounts
    found = {name: hierarchy_of(name, groups, mounts) for name in CONTROLLERS}
    kinds = {hierarchy.unified for hierarchy in found.values() if isinstance(hierarchy, Hierarchy)}
    if not kinds:
        return next(
            (hierarchy for hierarchy in found.values() if isinstance(hierarchy, Missing)),
            Missing("absent", "no control groups"),
        )
    return Cgroup(
        version="hybrid" if len(kinds) > 1 else "v2" if True in kinds else "v1",
        cpu_quota=_tightest(here, found["cpu"], _cpu_quota),
        cpuset_cpus=_tightest(here, found["cpuset"], _cpuset),
        memory_max_bytes=_tightest(here, found["memory"], _memory),
        pids_max=_tightest(here, found["pids"], _pids_max),
        pids_left=_tightest(here, found["pids"], _pids_left),
    )


def hierarchy_of(controller: str, groups: str, mounts: str) -> Fact[Hierarchy]:
    """Return the v1 hierarchy that holds the controller, else v2's (cgroups(7): a controller is in one of the two)."""
    unified: Fact[Hierarchy] = Missing("absent", f"no hierarchy has the {controller} controller")
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if controller in names.split(","):
            return _mounted(controller, path, mounts)
        if number == "0" and not names:
            unified = _mounted(None, path, mounts)
    return unified


def _mounted(controller: str | None, path: str, mounts: str) -> Fact[Hierarchy]:
    """Return where the v1 hierarchy of that controller, or with None v2's, is mounted (proc_pid_mountinfo(5)).

    The last mount hides those before it.
    """
    found: Fact[Hierarchy] = Missing("absent", f"the hierarchy {controller or 'of v2'} is not mounted")
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        match before.split(" "), after.split(" "):
            case [_, _, _, root, point, *_], [kind, _, options, *_]:
                is_ours = kind == "cgroup2" if controller is None else kind == "cgroup"
                if is_ours and (controller is None or controller in options.split(",")):
                    found = Hierarchy(controller is None, plain(point), _below(plain(root), path))
    return found


def _below(root: str, path: str) -> str:
    """Return the group relative to what is mounted.

    Where it lies outside, the mounted folder itself is all that is seen.

    A container without a cgroup namespace has the host's path in /proc/self/cgroup and its own group mounted.
    """
    if ".." in path.split("/") or ".." in root.split("/"):
        return ""
    if root.rstrip("/") and path != root and not path.startswith(root.rstrip("/") + "/"):
        return ""
    return path[len(root.rstrip("/")) :]


def plain(word: str) -> str:
    """Return a word of mountinfo, in which blanks are written in octal (proc_pid_mountinfo(5))."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), word)


def _tightest(
    here: Folder,
    hierarchy: Fact[Hierarchy],
    read: Callable[[Folder, Hierarchy], Fact[N | None]],
) -> Fact[N | None]:
    """Return the smallest limit of all levels.

    Missing where the process's own group, or one above it, cannot be read.
    """
    if isinstance(hierarchy, Missing):
        return hierarchy
    smallest: N | None = None
    for level in hierarchy.levels():
        folder = here.folder(level)
        # A mounted group that is not there under its path belongs to a namespace of which we see another part.
        if isinstance(folder, Missing):
            return folder
        limit = read(folder, hierarchy)
        if isinstance(limit, Missing):
            return limit
        if limit is not None and (smallest is None or limit < smallest):
            smallest = limit
    return smallest


def _has_no_file(folder: Folder, hierarchy: Hierarchy, controller: str) -> bool:
    """Return whether a limit's file is rightly absent: in a root group, or where the controller is not delegated."""
    if not hierarchy.unified:
        return folder.has("release_agent")  # only the root of a v1 hierarchy has it (cgroups(7))
    controllers = folder.text("cgroup.controllers")
    if isinstance(controllers, Missing):
        return False
    return controller not in controllers.split() or not folder.has("cgroup.type")


def _words(folder: Folder, hierarchy: Hierarchy, controller: str, name: str) -> Fact[list[str] | None]:
    """Return the words of a file; None where there rightly is none, which means no limit."""
    if not folder.has(name) and _has_no_file(folder, hierarchy, controller):
        return None
    line = folder.line(name)
    return line if isinstance(line, Missing) else line.split()


def _amount(folder: Folder, hierarchy: Hierarchy, controller: str, name: str) -> Fact[int | None]:
    words = _words(folder, hierarchy, controller, name)
    if words is None or isinstance(words, Missing):
        return words
    if words == ["max"]:
        return None
    if len(words) == 1 and _NUMBER.fullmatch(words[0]):
        return int(words[0])
    return Missing("error", f"{folder.shown(name)}: {' '.join(words)[:80]!r}")


def _cpu_quota(folder: Folder, hierarchy: Hierarchy) -> Fact[float | None]:
    """Return the quota in CPUs. v2: `cpu.max` with quota and period; v1: two files, a negative quota is none."""
    if not hierarchy.unified:
        quota = _amount(folder, hierarchy, "cpu", "cpu.cfs_quota_us")
        if quota is None or isinstance(quota, Missing) or quota < 0:
            return quota if isinstance(quota, Missing) else None
        period = folder.number("cpu.cfs_period_us")
        return period if isinstance(period, Missing) else _ratio(folder, quota, period)
    words = _words(folder, hierarchy, "cpu", "cpu.max")
    if words is None or isinstance(words, Missing):
        return words
    if words[:1] == ["max"]:
        return None
    match words:
        case [quota_us, period_us] if quota_us.isdecimal() and period_us.isdecimal():
            return _ratio(folder, int(quota_us), int(period_us))
    return Missing("error", f"{folder.shown('cpu.max')}: {' '.join(words)[:80]!r}")


def _ratio(folder: Folder, quota: int, period: int) -> Fact[float]:
    return (
        round(quota / period, 3)
        if period > 0
        else Missing("error", f"{folder.shown()}: a period of {period} us")
    )


def _memory(folder: Folder, hierarchy: Hierarchy) -> Fact[int | None]:
    name = "memory.max" if hierarchy.unified else "memory.limit_in_bytes"
    limit = _amount(folder, hierarchy, "memory", name)
    return None if isinstance(limit, int) and limit >= _NO_LIMIT_BYTES else limit


def _pids_max(folder: Folder, hierarchy: Hierarchy) -> Fact[int | None]:
    return _amount(folder, hierarchy, "pids", "pids.max")


def _pids_left(folder: Folder, hierarchy: Hierarchy) -> Fact[int | None]:
    limit = _pids_max(folder, hierarchy)
    if limit is None or isinstance(limit, Missing):
        return limit
    current = folder.number("pids.current")
    return current if isinstance(current, Missing) else max(limit - current, 0)


def _cpuset(folder: Folder, hierarchy: Hierarchy) -> Fact[int | None]:
    names = ("cpuset.cpus.effective",) if hierarchy.unified else ("cpuset.effective_cpus", "cpuset.cpus")
    name = next((candidate for candidate in names if folder.has(candidate)), names[-1])
    words = _words(folder, hierarchy, "cpuset", name)
    if words is None or isinstance(words, Missing):
        return words
    return cpus_in(" ".join(words))


def cpus_in(text: str) -> Fact[int]:
    """Return how many CPUs a list like `0-3,8` names (cpuset(7), list format)."""
    count = 0
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return Missing("error", f"no list of CPUs: {text[:80]!r}")
        count += int(last) - int(first) + 1 if dash else 1
    return count
