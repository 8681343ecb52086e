"""Reads which modules the kernel has, its release, and which kind of NVIDIA module is loaded."""

from __future__ import annotations

import re
from pathlib import Path

from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import Kernel

_FLAGS_LINE = re.compile(r"flags\s*:", re.ASCII)
_VERSION_LINE = re.compile(r"Linux version (\S+)", re.ASCII)


def read_kernel(root: Path) -> Kernel:
    """Return what /proc and /sys of the machine below `root` tell of its kernel."""
    here = machine(root)
    return Kernel(
        modules=_modules(here),
        release=_release(here),
        nvidia_open=_nvidia_open(here),
        virtual_machine=_virtual_machine(here),
    )


def _modules(here: Folder) -> Fact[tuple[str, ...]]:
    """Return the names in /proc/modules, and those in /sys/module, which has built-in ones too.

    Sorted, with underscores.
    """
    loaded, known = here.text("proc/modules"), here.names("sys/module")
    if isinstance(loaded, Missing) and isinstance(known, Missing):
        return loaded
    names = set() if isinstance(known, Missing) else {readable(name).replace("-", "_") for name in known}
    if isinstance(loaded, str):
        names |= {line.split(" ", 1)[0].replace("-", "_") for line in loaded.splitlines() if line.strip()}
    return tuple(sorted(names))


def _release(here: Folder) -> Fact[str]:
    release = here.line("proc/sys/kernel/osrelease")
    version = here.line("proc/version")
    if isinstance(release, str) or isinstance(version, Missing):
        return release
    match = _VERSION_LINE.match(version)
    return match[1] if match else Missing("error", f"{here.shown('proc/version')}: {version[:80]!r}")


def _nvidia_open(here: Folder) -> Fact[bool]:
    """Return whether it is the open module: its version line says "NVIDIA UNIX Open Kernel Module for x86_64"."""
    version = here.line("proc/driver/nvidia/version")
    return version if isinstance(version, Missing) else "Open Kernel Module" in version


def _virtual_machine(here: Folder) -> Fact[bool]:
    """Return whether the CPU says that a hypervisor runs it (arch/x86: X86_FEATURE_HYPERVISOR); other CPUs do not."""
    text = here.text("proc/cpuinfo")
    if isinstance(text, Missing):
        return text
    flags = next((line.partition(":")[2] for line in text.splitlines() if _FLAGS_LINE.match(line)), None)
    if flags is None:
        return Missing("unsupported", f"{here.shown('proc/cpuinfo')} has no flags")
    return "hypervisor" in flags.split()


KERNEL = Section(
    {"kernel": "/proc/modules, /sys/module, /proc/version, /proc/driver/nvidia/version, /proc/cpuinfo"},
    read=lambda _: read_kernel(Path("/")),
    read_tree=lambda here: read_kernel(here.root),
)
