"""Reads the basic limits of this process and host: memory, /dev/shm, rlimits, cores, the ephemeral ports."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from ncclcheck.facts.deadline import missing_for
from ncclcheck.facts.files import read_line, read_text
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import DevShm, Limits


def read_limits() -> Limits:
    """The soft limits a worker started here would inherit, each a value of its own."""
    return Limits(
        mem_total_kib=_mem_total_kib(),
        dev_shm=_dev_shm(),
        nofile=_soft_limit(resource.RLIMIT_NOFILE),
        memlock_kib=_soft_limit(resource.RLIMIT_MEMLOCK, 1024),
        nproc=_soft_limit(resource.RLIMIT_NPROC),
        cpus=_cpus(),
        port_range=_port_range(),
    )


def _soft_limit(number: int, unit: int = 1) -> Fact[int | None]:
    try:
        soft, _ = resource.getrlimit(number)
    except (OSError, ValueError) as error:
        return missing_for(error)
    return None if soft == resource.RLIM_INFINITY else soft // unit


def _mem_total_kib() -> Fact[int]:
    text = read_text(Path("/proc/meminfo"))
    if isinstance(text, Missing):
        return text
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0])
    return Missing("absent", "/proc/meminfo has no MemTotal")


def _dev_shm() -> Fact[DevShm]:
    """Type and size of the filesystem that holds /dev/shm, which need not be a mount of its own."""
    place = "/dev/shm"
    mounts = read_text(Path("/proc/self/mounts"))
    if isinstance(mounts, Missing):
        return mounts
    try:
        status = os.statvfs(place)
    except OSError as error:
        return missing_for(error, place)
    kind = filesystem_type(mounts, place)
    return kind if isinstance(kind, Missing) else DevShm(kind, status.f_blocks * status.f_frsize // 1024)


def filesystem_type(mounts: str, place: str) -> Fact[str]:
    """The type of the last mount in a /proc/self/mounts text that covers `place`, the deepest first."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        _, point, name, *_ = line.split(" ")
        covers = place == point or place.startswith(point.rstrip("/") + "/")
        if covers and len(point) >= best:
            best, kind = len(point), name
    return kind or Missing("absent", f"no mount covers {place}")


def _cpus() -> Fact[int]:
    try:
        return len(os.sched_getaffinity(0))
    except OSError as error:
        return missing_for(error)


def _port_range() -> Fact[tuple[int, int]]:
    """The ports an unbound listener gets (Documentation/networking/ip-sysctl.rst); the kernel uses it for IPv6 too."""
    path = Path("/proc/sys/net/ipv4/ip_local_port_range")
    text = read_line(path)
    if isinstance(text, Missing):
        return text
    low, high = text.split()
    return int(low), int(high)
