"""Reads RDMA devices and their ports from /sys/class/infiniband, and what a process needs to use them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ncclcheck.facts.pci.pci_address import pci_of
from ncclcheck.facts.pci.pci_device import numa_node
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder, machine, natural
from ncclcheck.model.fact import LOADER_NOT_ASKED, Fact, Missing
from ncclcheck.model.hardware import Gid, Rdma, RdmaPort

# NCCL, transport/net_ib.cc: ncclIbGdrSupport looks whether one of these files exists; which of them, by version.
PEER_MEMORY_PATHS = (
    "/sys/kernel/mm/memory_peers/nv_mem/version",
    "/sys/kernel/mm/memory_peers/nv_mem_nc/version",
    "/sys/kernel/mm/memory_peers/nvidia-peermem/version",
    "/sys/module/nvidia_peermem/version",
)
_NO_ACTIVE_MTU = Missing("unsupported", "/sys does not tell the active MTU of a port, only verbs do")
_UNSET_GIDS = ("0000:0000:0000:0000:0000:0000:0000:0000", "fe80:0000:0000:0000:0000:0000:0000:0000")
_GID = re.compile(r"[0-9a-f]{4}(?::[0-9a-f]{4}){7}", re.ASCII)
_LINK_LAYERS = ("InfiniBand", "Ethernet", "Unknown")
_PORT_NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)
_GID_INDEX = re.compile(r"[0-9]{1,5}", re.ASCII)
_NUMBERED_WORD = re.compile(r"-?[0-9]+: *(\S.*)", re.ASCII)
_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec(?: \(([0-9]{1,2}X)(?: (\S+))?\))?", re.ASCII)


def read_rdma(root: Path) -> Fact[Rdma]:
    """Return the RDMA ports of the machine below `root`, its device files and peer-memory paths.

    Devices are in the order in which libibverbs most likely lists them. rdma-core asks the kernel over netlink
    (libibverbs/ibdev_nl.c), which answers in the order of registration; /sys does not tell it, but the number of
    a device's uverbs file is the lowest that was free at registration. Devices without one follow by name. Missing
    where the class folder is there and cannot be read, or /sys/class itself is not there; without the folder alone
    there is no device.
    """
    here = machine(root)
    classes = here.folder("sys/class")
    if isinstance(classes, Missing):
        return classes
    uverbs = _uverbs_by_device(here)
    names = here.names("sys/class/infiniband")
    if isinstance(names, Missing) and names.missing != "absent":
        return names
    listed = () if isinstance(names, Missing) else names
    in_order = sorted(listed, key=lambda name: (name not in uverbs, natural(uverbs.get(name, ""))))
    found = {name: _ports_of(here, name, uverbs.get(name)) for name in in_order}
    return Rdma(
        ports=tuple(port for ports in found.values() if not isinstance(ports, Missing) for port in ports),
        unread={readable(name): why.detail for name, why in found.items() if isinstance(why, Missing)},
        device_files=_device_files(here),
        peer_memory=_peer_memory(here),
        unusable_files=Missing("absent", "not asked of the kernel"),
        verbs_library=LOADER_NOT_ASKED,
    )


def unusable_files(rdma: Rdma) -> Fact[tuple[str, ...]]:
    """Return the device files of this machine that this process may not open for reading and writing.

    The kernel is asked with access(2); no device is opened. A device cgroup can still refuse what this allows.
    """
    if isinstance(rdma.device_files, Missing):
        return rdma.device_files
    access = os.R_OK | os.W_OK
    return tuple(
        name
        for name in rdma.device_files
        if not os.access(Path("/dev/infiniband") / name, access, effective_ids=True)
    )


def _uverbs_by_device(here: Folder) -> dict[str, str]:
    """Return the uverbs file of each device, which /sys/class/infiniband_verbs/uverbsN/ibdev names."""
    names = here.names("sys/class/infiniband_verbs")
    found: dict[str, str] = {}
    for name in () if isinstance(names, Missing) else names:
        device = here.line(f"sys/class/infiniband_verbs/{name}/ibdev")
        if isinstance(device, str) and name.startswith("uverbs"):
            found.setdefault(device, name)
    return found


def _ports_of(here: Folder, name: str, uverbs: str | None) -> list[RdmaPort] | Missing:
    """Return the ports of a device of the class, of which each has one at least; Missing where they cannot be seen."""
    folder = here.folder(f"sys/class/infiniband/{name}")
    ports = [] if isinstance(folder, Missing) else _read_ports(folder, name, uverbs)
    if ports:
        return ports
    numbers = folder if isinstance(folder, Missing) else folder.names("ports")
    return numbers if isinstance(numbers, Missing) else Missing("absent", "no port in its folder")


def _read_ports(folder: Folder, name: str, uverbs: str | None) -> list[RdmaPort]:
    numbers = folder.names("ports")
    listed = () if isinstance(numbers, Missing) else numbers
    ports = []
    for number in listed:
        port = folder.folder(f"ports/{number}")
        if _PORT_NUMBER.fullmatch(number) and not isinstance(port, Missing):
            ports.append(_read_port(folder, port, readable(name), int(number), uverbs))
    return ports


def _read_port(folder: Folder, port: Folder, name: str, number: int, uverbs: str | None) -> RdmaPort:
    rate, width, speed = _rate(port)
    return RdmaPort(
        device=name,
        port=number,
        link_layer=_link_layer(port),
        state=_word(port, "state"),
        phys_state=_word(port, "phys_state"),
        rate_gbps=rate,
        width=width,
        speed=speed,
        lid=port.number("lid"),
        active_mtu=_NO_ACTIVE_MTU,
        pci=pci_of(folder),
        numa_node=numa_node(folder, "device/numa_node"),
        firmware=folder.line("fw_ver"),
        board_id=folder.line("board_id"),
        hca_type=folder.line("hca_type"),
        node_guid=folder.line("node_guid"),
        driver=_driver(folder),
        uverbs=uverbs or Missing("absent", f"no entry of /sys/class/infiniband_verbs names {name}"),
        gids=_gids(port),
        gid_table_length=_gid_table_length(port),
    )


def _driver(folder: Folder) -> Fact[str]:
    device = folder.folder("device")
    return device if isinstance(device, Missing) else device.link_name("driver")


def _word(port: Folder, name: str) -> Fact[str]:
    """Return the word of `4: ACTIVE` (drivers/infiniband/core/sysfs.c, state_show and phys_state_show)."""
    text = port.line(name)
    if isinstance(text, Missing):
        return text
    match = _NUMBERED_WORD.fullmatch(text)
    return match[1] if match else Missing("error", f"{port.shown(name)}: {text[:80]!r}")


def _link_layer(port: Folder) -> Fact[str]:
    """Return one of the kernel's three words (drivers/infiniband/core/sysfs.c, link_layer_show); EFA's is Unknown."""
    text = port.line("link_layer")
    if isinstance(text, Missing) or text in _LINK_LAYERS:
        return text
    return Missing("error", f"{port.shown('link_layer')}: {text[:80]!r}")


def _rate(port: Folder) -> tuple[Fact[float], Fact[str], Fact[str]]:
    """Return Gbit/s, width and speed of `400 Gb/sec (4X NDR)` (drivers/infiniband/core/sysfs.c, rate_show).

    A speed that the kernel has no word for is left out there.
    """
    text = port.line("rate")
    if isinstance(text, Missing):
        return text, text, text
    match = _RATE.fullmatch(text)
    if match is None:
        bad = Missing("error", f"{port.shown('rate')}: {text[:80]!r}")
        return bad, bad, bad
    unknown = Missing("absent", f"{port.shown('rate')}: {text}")
    return float(match[1]), match[2] or unknown, match[3] or unknown


def _gids(port: Folder) -> Fact[tuple[Gid, ...]]:
    indexes = port.names("gids")
    if isinstance(indexes, Missing):
        return () if indexes.missing == "absent" else indexes
    found = []
    for index in indexes:
        gid = port.line(f"gids/{index}")
        if isinstance(gid, Missing) or not _GID_INDEX.fullmatch(index):
            continue
        if _GID.fullmatch(gid) and gid not in _UNSET_GIDS:
            attributes = port.line(f"gid_attrs/types/{index}"), port.line(f"gid_attrs/ndevs/{index}")
            found.append(Gid(int(index), gid, *attributes))
    return tuple(found)


def _gid_table_length(port: Folder) -> Fact[int]:
    indexes = port.names("gids")
    if isinstance(indexes, Missing):
        return indexes
    return sum(_GID_INDEX.fullmatch(index) is not None for index in indexes)


def _device_files(here: Folder) -> Fact[tuple[str, ...]]:
    """Return the uverbs names in /dev/infiniband; a tree without /dev says nothing."""
    dev = here.folder("dev")
    if isinstance(dev, Missing):
        return dev
    names = dev.names("infiniband")
    if isinstance(names, Missing):
        return () if names.missing == "absent" else names
    return tuple(readable(name) for name in names if name.startswith("uverbs"))


def _peer_memory(here: Folder) -> Fact[tuple[str, ...]]:
    """Return the paths that exist. Without /sys/module, which every kernel has, an absent path says nothing."""
    found = tuple(path for path in PEER_MEMORY_PATHS if here.exists(path))
    modules = here.folder("sys/module")
    return modules if isinstance(modules, Missing) and not found else found
