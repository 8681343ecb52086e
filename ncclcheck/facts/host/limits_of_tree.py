"""Reads the limits of a recorded machine, and of the process that was `self` there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ncclcheck.facts.host.cgroup import read_cgroup
from ncclcheck.facts.host.limits import (
    cpus_allowed,
    effective_capabilities,
    mem_total_kib,
    mount_of,
    port_range,
    process_limit,
    read_limits,
    size_option_kib,
)
from ncclcheck.facts.section import Section
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import NOT_IN_A_TREE, Fact, Missing
from ncclcheck.model.facts import DevShm, Limits

T = TypeVar("T")


def read_limits_of_tree(here: Folder) -> Limits:
    """Return what belongs to the machine, and the limits of the process that was `self` there, where they were kept."""
    limits, status = _recorded_text(here, "proc/self/limits"), _recorded_text(here, "proc/self/status")

    def limit(name: str, which: int = 0, unit: int = 1) -> Fact[int | None]:
        return limits if isinstance(limits, Missing) else process_limit(limits, name, which, unit)

    return Limits(
        mem_total_kib=_then(here.text("proc/meminfo"), mem_total_kib),
        dev_shm=_dev_shm(here),
        nofile=limit("Max open files"),
        memlock_kib=limit("Max locked memory", unit=1024),
        nproc=limit("Max processes"),
        cpus=_then(status, cpus_allowed),
        port_range=_then(here.line("proc/sys/net/ipv4/ip_local_port_range"), port_range),
        nofile_hard=limit("Max open files", which=1),
        cgroup=read_cgroup(here) if here.exists("proc/self/cgroup") else NOT_IN_A_TREE,
        capabilities=_then(status, effective_capabilities),
        namespaces=NOT_IN_A_TREE,
    )


def _recorded_text(here: Folder, path: str) -> Fact[str]:
    """Return the text of a file that a recording need not have."""
    return here.text(path) if here.exists(path) else NOT_IN_A_TREE


def _dev_shm(here: Folder) -> Fact[DevShm]:
    mounts = here.text("proc/mounts")
    if isinstance(mounts, Missing):  # a link to self/mounts, where the recording kept it
        mounts = here.text("proc/self/mounts")
    mount = mounts if isinstance(mounts, Missing) else mount_of(mounts, "/dev/shm")
    return mount if isinstance(mount, Missing) else DevShm(mount.type, size_option_kib(mount.options))


def _then(read: Fact[str], function: Callable[[str], Fact[T]]) -> Fact[T]:
    return read if isinstance(read, Missing) else function(read)


LIMITS = Section(
    {
        "limits": "getrlimit(2), sched_getaffinity(2), statvfs(2) of /dev/shm, /proc/meminfo, /proc/self/status, "
        "/proc/self/ns, /sys/fs/cgroup, /proc/sys/net/ipv4/ip_local_port_range"
    },
    read=lambda _: read_limits(),
    read_tree=read_limits_of_tree,
)
