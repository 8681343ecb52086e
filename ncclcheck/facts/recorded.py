"""Reads a recorded machine as if its folder were `/`: nothing of the machine that runs this is in the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from ncclcheck.facts.deadline import Started, start
from ncclcheck.facts.environment import read_environment
from ncclcheck.facts.files import readable
from ncclcheck.facts.host.cgroup import read_cgroup
from ncclcheck.facts.host.kernel import read_kernel
from ncclcheck.facts.host.limits import (
    cpus_allowed,
    effective_capabilities,
    mem_total_kib,
    mount_of,
    port_range,
    process_limit,
    size_option_kib,
)
from ncclcheck.facts.nccl.nccl_config import settings_in
from ncclcheck.facts.network.interface_files import SYSFS_NET, Told, complete
from ncclcheck.facts.pci.pci import nvidia_gpus, read_pci
from ncclcheck.facts.rdma.rdma import read_rdma
from ncclcheck.facts.rdma.rdma_counters import read_rdma_counters
from ncclcheck.facts.tree import Place, machine, natural
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import (
    DevShm,
    Gpu,
    Interface,
    Limits,
    Names,
    NcclChoice,
    NcclConfigFile,
    NodeFacts,
)
from ncclcheck.model.hardware import Pci

UNTOLD = Missing("absent", "a recorded tree does not tell")
DEADLINE_S = 30.0  # a tree may lie on a slow file system
_LONGEST_NAME = 253  # RFC 1035
_NCCL_CONF = "etc/nccl.conf"
# linux/if.h; IFF_RUNNING (0x40) is never in the file.
_FLAGS = {
    0x1: "up",
    0x2: "broadcast",
    0x4: "debug",
    0x8: "loopback",
    0x10: "pointopoint",
    0x20: "notrailers",
    0x80: "noarp",
    0x100: "promisc",
    0x200: "allmulti",
    0x400: "master",
    0x800: "slave",
    0x1000: "multicast",
    0x2000: "portsel",
    0x4000: "automedia",
    0x8000: "dynamic",
}

T = TypeVar("T")


class Recorded(Struct, frozen=True):
    """A recorded machine: its own name, else that of its folder, and its facts."""

    host: str
    facts: NodeFacts


def read_recorded(root: Path, deadline_s: float = DEADLINE_S) -> Recorded:
    """The machine whose `/` is `root`; OSError when that is no folder. What the tree does not tell is Missing."""
    here = machine(root)
    end = time.monotonic() + deadline_s
    bus_read: Started[Fact[Pci]] = start(read_pci, root)
    rdma, kernel = start(read_rdma, root), start(read_kernel, root)
    counters = start(read_rdma_counters, root)
    interfaces, limits = start(read_interface_files, here), start(_limits, here)
    names, nccl = start(_names, here), start(_nccl, here)
    environment = start(_environment, here)

    def left_s() -> float:
        return end - time.monotonic()

    bus, named = bus_read.result(left_s()), names.result(left_s())
    folder_name = _printable(here.root.name) or "recorded"
    return Recorded(
        host=folder_name if isinstance(named, Missing) else named.hostname,
        facts=NodeFacts(
            launch=UNTOLD,
            interfaces=interfaces.result(left_s()),
            routes=UNTOLD,
            names=named,
            environment=environment.result(left_s()),
            software=UNTOLD,
            code=UNTOLD,
            gpus=_gpus(bus),
            limits=limits.result(left_s()),
            nccl=nccl.result(left_s()),
            master=UNTOLD,
            rdma=rdma.result(left_s()),
            pci=bus,
            kernel=kernel.result(left_s()),
            rdma_counters=counters.result(left_s()),
        ),
    )


def read_interface_files(here: Place) -> Fact[tuple[Interface, ...]]:
    """The interfaces in /sys/class/net in the order of their indexes, without addresses, which /sys does not tell."""
    names = here.names(SYSFS_NET)
    if isinstance(names, Missing):
        return names
    found = [
        complete(here, _told(name, folder))
        for name in names
        if not isinstance(folder := here.folder(f"{SYSFS_NET}/{name}"), Missing)
    ]
    return tuple(sorted(found, key=lambda one: (one.index == 0, one.index, natural(one.name))))


def _told(name: str, folder: Place) -> Told:
    flags, index = folder.number("flags"), folder.number("ifindex")
    names = () if isinstance(flags, Missing) else tuple(word for bit, word in _FLAGS.items() if flags & bit)
    running = "up" in names and _is_operational(folder)
    return Told(
        name=name,
        index=0 if isinstance(index, Missing) else index,
        mtu=folder.number("mtu"),
        flags=(*names, "running") if running else names,
        running=running,
        addresses=(),
        driver=UNTOLD,
        type=folder.number("type"),
    )


def _is_operational(folder: Place) -> bool:
    """IFF_RUNNING of an interface that is up: its state is up or unknown (netif_oper_up, linux/netdevice.h)."""
    state = folder.line("operstate")
    return state in ("up", "unknown") if isinstance(state, str) else folder.number("carrier") == 1


def _gpus(pci: Fact[Pci]) -> Fact[tuple[Gpu, ...]]:
    """NVIDIA's display and 3D controllers in the order of their addresses, which is NVML's."""
    if isinstance(pci, Missing):  # that there is no GPU does not follow from a bus that is not told of
        return Missing("error", f"the PCI bus, by which GPUs are listed: {pci.detail}")
    return tuple(
        Gpu(index, UNTOLD, UNTOLD, device.address, UNTOLD) for index, device in enumerate(nvidia_gpus(pci))
    )


def _limits(here: Place) -> Limits:
    """What belongs to the machine, and the limits of the process that was `self` there, where they were kept."""
    limits, status = _kept(here, "proc/self/limits"), _kept(here, "proc/self/status")

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
        cgroup=read_cgroup(here) if here.exists("proc/self/cgroup") else UNTOLD,
        capabilities=_then(status, effective_capabilities),
        namespaces=UNTOLD,
    )


def _kept(here: Place, path: str) -> Fact[str]:
    """The text of a file that a recording need not have."""
    return here.text(path) if here.exists(path) else UNTOLD


def _dev_shm(here: Place) -> Fact[DevShm]:
    mounts = here.text("proc/mounts")
    if isinstance(mounts, Missing):  # a link to self/mounts, where the recording kept it
        mounts = here.text("proc/self/mounts")
    mount = mounts if isinstance(mounts, Missing) else mount_of(mounts, "/dev/shm")
    return mount if isinstance(mount, Missing) else DevShm(mount.type, size_option_kib(mount.options))


def _nccl(here: Place) -> Fact[NcclChoice]:
    """The settings of the machine's /etc/nccl.conf; a tree without /etc tells nothing of NCCL."""
    if isinstance(here.folder("etc"), Missing):
        return UNTOLD
    settings = _then(here.text(_NCCL_CONF), settings_in)
    return NcclChoice(UNTOLD, (NcclConfigFile(f"/{_NCCL_CONF}", settings),), home_set=False)


def _environment(here: Place) -> Fact[dict[str, str]]:
    """The variables that a recording kept, as /proc/self/environ has them: ended by a zero byte each."""
    text = here.text("proc/self/environ")
    if isinstance(text, Missing):
        return UNTOLD
    return read_environment(dict(item.partition("=")[::2] for item in text.split("\0") if "=" in item))


def _names(here: Place) -> Fact[Names]:
    """The name in /proc/sys/kernel/hostname, which the kernel used, else that in /etc/hostname; it is not resolved."""
    for path in ("proc/sys/kernel/hostname", "etc/hostname"):
        line = here.line(path)
        if isinstance(line, str) and (name := _printable(line.splitlines()[0])):
            return Names(name, UNTOLD, UNTOLD)
    return UNTOLD


def _printable(text: str) -> str:
    """The text as a host name, without anything that a terminal would obey."""
    return "".join(letter for letter in readable(text) if letter.isprintable()).strip()[:_LONGEST_NAME]


def _then(read: Fact[str], function: Callable[[str], Fact[T]]) -> Fact[T]:
    return read if isinstance(read, Missing) else function(read)
