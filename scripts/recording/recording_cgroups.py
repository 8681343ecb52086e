"""Records the control groups of a process: the files that hold its limits, under groups whose names are replaced."""

from __future__ import annotations

from collections.abc import Callable

from ncclcheck.facts.host.cgroup import CONTROLLERS, Hierarchy, hierarchy_of, plain
from ncclcheck.model.fact import Missing
from scripts.recording.recording_tree import Recording

# What cgroup.py reads. Of `release_agent` only that it is there: what is in it is a path of this machine.
_FILES = (
    "cgroup.controllers", "cgroup.type", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuset.cpus",
    "cpuset.cpus.effective", "cpuset.effective_cpus", "memory.max", "memory.limit_in_bytes", "pids.max", "pids.current",
)  # fmt: skip
_ROOT_OF_V1 = "release_agent"


def record_cgroups(recording: Recording) -> None:
    """Record the groups of this process up to the visible root; names of users and jobs are replaced."""
    here = recording.here
    groups, mounts = here.text("proc/self/cgroup"), here.text("proc/self/mountinfo")
    if isinstance(groups, Missing) or isinstance(mounts, Missing):
        return
    rename = recording.redaction.group
    recording.add(
        "proc/self/cgroup", "file", "".join(_group(line, rename) for line in groups.splitlines()).encode()
    )
    shown = [line for text in mounts.splitlines() if (line := _mount(text, rename))]
    recording.add("proc/self/mountinfo", "file", "".join(shown).encode())
    for controller in CONTROLLERS:
        hierarchy = hierarchy_of(controller, groups, mounts)
        if isinstance(hierarchy, Hierarchy) and hierarchy.mount.startswith(
            "/sys/"
        ):  # nothing else is recorded
            _levels(recording, hierarchy, rename)


def _group(line: str, rename: Callable[[str], str]) -> str:
    number, _, rest = line.partition(":")
    names, _, path = rest.partition(":")
    return f"{number}:{names}:{rename(path)}\n"


def _mount(text: str, rename: Callable[[str], str]) -> str:
    """Return the line of a hierarchy's mount without what may name the machine; empty for other filesystems."""
    before, _, after = text.partition(" - ")
    match before.split(" "), after.split(" "):
        case [number, parent, device, root, point, options, *_], [
            ("cgroup" | "cgroup2") as kind,
            _,
            told,
            *_,
        ]:
            bare = ",".join(option for option in told.split(",") if "=" not in option)
            return (
                f"{number} {parent} {device} {rename(plain(root))} {point} {options} - {kind} {kind} {bare}\n"
            )
    return ""


def _levels(recording: Recording, hierarchy: Hierarchy, rename: Callable[[str], str]) -> None:
    renamed = Hierarchy(hierarchy.unified, hierarchy.mount, rename(hierarchy.group))
    for level, out in zip(hierarchy.levels(), renamed.levels(), strict=True):
        folder = recording.here.folder(level)
        if isinstance(folder, Missing):
            return
        recording.add(out, "folder")
        for name in _FILES:
            data = folder.data(name, 1 << 16)
            if not isinstance(data, Missing):
                recording.add(f"{out}/{name}", "file", data)
        if folder.has(_ROOT_OF_V1):
            recording.add(f"{out}/{_ROOT_OF_V1}", "file")
