"""Reads the limits of this process and host: memory, /dev/shm, rlimits, cores, ports, control groups, capabilities."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

from msgspec import Struct

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.host.cgroup import cpus_in, read_cgroup
from ncclcheck.facts.host.open_files import file_limits
from ncclcheck.facts.text_files import link_target, read_line, read_text
from ncclcheck.facts.tree import machine
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import DevShm, Limits

_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_SIZE = re.compile(r"size=([0-9]{1,15})([kKmMgG]?)", re.ASCII)
_CAPABILITIES = {14: "ipc_lock", 21: "sys_admin", 23: "sys_nice", 24: "sys_resource"}  # linux/capability.h
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{1,16}", re.ASCII)
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_UNIT_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def read_limits() -> Limits:
    """Return the soft limits a worker started here would inherit, each a value of its own."""
    return Limits(
        mem_total_kib=_mem_total_kib(),
        dev_shm=_dev_shm(),
        nofile=_soft_limit(resource.RLIMIT_NOFILE),
        memlock_kib=_soft_limit(resource.RLIMIT_MEMLOCK, 1024),
        nproc=_soft_limit(resource.RLIMIT_NPROC),
        cpus=_cpus(),
        port_range=_port_range(),
        nofile_hard=_limit(resource.RLIMIT_NOFILE, 1),
        cgroup=read_cgroup(machine(Path("/"))),
        capabilities=_capabilities(),
        namespaces=_namespaces(),
    )


def _soft_limit(number: int, unit: int = 1) -> Fact[int | None]:
    return _limit(number, 0, unit)


def _limit(number: int, which: int, unit: int = 1) -> Fact[int | None]:
    """Return the soft (0) or the hard (1) limit."""
    try:
        limit = (file_limits() if number == resource.RLIMIT_NOFILE else resource.getrlimit(number))[which]
    except (OSError, ValueError) as error:
        return missing_for(error)
    return None if limit == resource.RLIM_INFINITY else limit // unit


def effective_capabilities(status: str) -> Fact[tuple[str, ...]]:
    """Return the capabilities of interest in the CapEff of a /proc/self/status text, in our own user namespace."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff" and _HEXADECIMAL.fullmatch(value.strip()):
            mask = int(value.strip(), 16)
            return tuple(word for bit, word in _CAPABILITIES.items() if mask >> bit & 1)
    return Missing("absent", "/proc/self/status has no CapEff")


def _capabilities() -> Fact[tuple[str, ...]]:
    text = read_text(Path("/proc/self/status"))
    return text if isinstance(text, Missing) else effective_capabilities(text)


def _namespaces() -> Fact[dict[str, str]]:
    """Return the numbers in `net:[4026531840]`; a kind that this kernel does not have is left out."""
    targets = {kind: link_target(Path("/proc/self/ns") / kind) for kind in _NAMESPACES}
    found = {
        kind: target.partition("[")[2].rstrip("]")
        for kind, target in targets.items()
        if isinstance(target, str)
    }
    return found or next(target for target in targets.values() if isinstance(target, Missing))


def cpus_allowed(status: str) -> Fact[int]:
    """Return how many CPUs the Cpus_allowed_list of a /proc/self/status text names."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return cpus_in(value.strip())
    return Missing("absent", "/proc/self/status has no Cpus_allowed_list")


def process_limit(limits: str, name: str, which: int = 0, unit: int = 1) -> Fact[int | None]:
    """Return the soft (0) or hard (1) limit of that name in a /proc/self/limits text (proc_pid_limits(5)).

    None: unlimited.
    """
    for line in limits.splitlines():
        words = line.removeprefix(name).split() if line.startswith(f"{name}  ") else []
        if len(words) > which:
            if words[which] == "unlimited":
                return None
            return (
                int(words[which]) // unit if _NUMBER.fullmatch(words[which]) else Missing("error", line[:80])
            )
    return Missing("absent", f"/proc/self/limits has no {name!r}")


def mem_total_kib(meminfo: str) -> Fact[int]:
    """Return MemTotal of a /proc/meminfo text."""
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        number, _, unit = value.strip().partition(" ")
        if name == "MemTotal" and unit.strip() == "kB" and _NUMBER.fullmatch(number):
            return int(number)
    return Missing("absent", "/proc/meminfo has no MemTotal")


def port_range(text: str) -> Fact[tuple[int, int]]:
    """Return the two numbers of an ip_local_port_range text."""
    numbers = [int(word) for word in text.split() if _NUMBER.fullmatch(word)]
    if len(numbers) != len(("low", "high")):
        return Missing("error", f"ip_local_port_range: {text[:80]!r}")
    return numbers[0], numbers[1]


class Mount(Struct, frozen=True):
    """The type of a mounted filesystem and its options."""

    type: str
    options: str


def mount_of(mounts: str, place: str) -> Fact[Mount]:
    """Return the last mount in a /proc/self/mounts text that covers `place`, the deepest first."""
    best, found = -1, None
    for line in mounts.splitlines():
        match line.split(" "):
            case [_, point, kind, options, *_]:
                covers = place == point or place.startswith(point.rstrip("/") + "/")
                if covers and len(point) >= best:
                    best, found = len(point), Mount(kind, options)
    return found or Missing("absent", f"no mount covers {place}")


def size_option_kib(options: str) -> Fact[int]:
    """Return the size option of a mounted tmpfs, which the kernel writes in KiB (mm/shmem.c, shmem_show_options).

    A person who writes one down may use the other units of tmpfs(5). The kernel leaves out the size that a tmpfs has
    by itself, half of the memory.
    """
    for option in options.split(","):
        if match := _SIZE.fullmatch(option):
            return int(match[1]) * _UNIT_BYTES[match[2].lower()] // 1024
    return Missing("absent", "the mount has no size option")


def _dev_shm() -> Fact[DevShm]:
    """Return type and size of the filesystem that holds /dev/shm, which need not be a mount of its own."""
    place = "/dev/shm"
    mounts = read_text(Path("/proc/self/mounts"))
    if isinstance(mounts, Missing):
        return mounts
    try:
        status = os.statvfs(place)
    except OSError as error:
        return missing_for(error, place)
    mount = mount_of(mounts, place)
    if isinstance(mount, Missing):
        return mount
    return DevShm(
        mount.type,
        status.f_blocks * status.f_frsize // 1024,
        status.f_bavail * status.f_frsize // 1024,
    )


def _cpus() -> Fact[int]:
    try:
        return len(os.sched_getaffinity(0))
    except OSError as error:
        return missing_for(error)


def _port_range() -> Fact[tuple[int, int]]:
    """Return the ports an unbound listener gets (Documentation/networking/ip-sysctl.rst).

    The kernel uses it for IPv6 too.
    """
    text = read_line(Path("/proc/sys/net/ipv4/ip_local_port_range"))
    return text if isinstance(text, Missing) else port_range(text)


def _mem_total_kib() -> Fact[int]:
    text = read_text(Path("/proc/meminfo"))
    return text if isinstance(text, Missing) else mem_total_kib(text)
