"""Records a machine for a bug report: the files of /sys, /proc, /dev and /etc that `facts --root` reads, redacted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.kept_environment import read_environment
from ncclcheck.facts.nccl.nccl_config import settings_in
from ncclcheck.facts.pci.pci import TOPOLOGY_FILE
from ncclcheck.facts.pci.pci_address import is_pci_address
from ncclcheck.facts.pci.pci_device import is_bridge, without_serial_number
from ncclcheck.facts.rdma.rdma import PEER_MEMORY_PATHS
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Missing
from scripts.recording.recording_cgroups import record_cgroups
from scripts.recording.recording_tree import Recording
from scripts.recording.redaction import Redaction

_NET = ("type", "mtu", "operstate", "flags", "ifindex", "speed", "carrier", "tun_flags")
_NET_FOLDERS = ("bonding", "bridge")
_PCI = (
    "class", "vendor", "device", "numa_node", "current_link_speed", "current_link_width", "max_link_speed",
    "max_link_width",
)  # fmt: skip
_STATUS = ("CapEff:", "Cpus_allowed_list:")
_DEVICE = ("fw_ver", "board_id", "hca_type")
_PORT = ("link_layer", "state", "phys_state", "rate", "lid")
_AS_IT_IS = (
    "proc/meminfo", "proc/sys/kernel/osrelease", "proc/sys/net/ipv4/ip_local_port_range",
    "proc/driver/nvidia/version", "proc/net/vlan/config", "proc/self/limits",
    *(path.lstrip("/") for path in PEER_MEMORY_PATHS),
)  # fmt: skip


def record(
    source: Path, key: bytes, environ: Mapping[str, str], deadline_s: float = timeouts.RECORDING_S
) -> Recording:
    """Record the machine whose `/` is `source`; `left_out` says which parts did not end in time, and why.

    Only files of /sys, /proc, /dev and /etc are read, and whether NCCL's topology file is in /var/run: no mounted
    filesystem is touched.
    """
    recording = Recording(source, Redaction(key, host_names(machine(source))))
    parts: tuple[Callable[[Recording], None], ...] = (
        _interfaces,
        _rdma,
        _pci,
        _modules,
        _processes,
        record_cgroups,
        _settings,
    )
    end = time.monotonic() + deadline_s
    started = [(part, start(part, recording)) for part in parts]
    for part, running in started:
        why = running.result(end - time.monotonic())
        if isinstance(why, Missing):
            recording.left_out.append(f"{part.__name__.strip('_')}: {why}")
    content = b"".join(f"{name}={value}\0".encode() for name, value in _shown(recording, environ).items())
    recording.add("proc/self/environ", "file", content)
    return recording


def host_names(here: Folder) -> tuple[str, ...]:
    """Return the names that the machine gives itself, the full one and the short."""
    names_read = (here.line("proc/sys/kernel/hostname"), here.line("etc/hostname"))
    names = [name for name in names_read if isinstance(name, str)]
    return tuple(dict.fromkeys([*names, *(name.partition(".")[0] for name in names)]))


def _shown(recording: Recording, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the program itself lets out of a node, redacted."""
    return {name: recording.redaction.text(value) for name, value in read_environment(environ).items()}


def _each(here: Folder, folder: str) -> Iterable[tuple[str, Folder]]:
    """Yield the folders in a folder, by name, behind the links that lead to them."""
    names = here.names(folder)
    for name in () if isinstance(names, Missing) else names:
        place = here.folder(f"{folder}/{name}")
        if not isinstance(place, Missing):
            yield name, place


def _class(recording: Recording, folder: str) -> Iterable[tuple[str, Folder]]:
    here = recording.here
    at = here.folder(folder)
    if isinstance(at, Missing):
        return
    recording.add(recording.path(at), "folder")
    for name, place in _each(here, folder):
        recording.link(at, name)
        yield name, place


def _interfaces(recording: Recording) -> None:
    for _, place in _class(recording, "sys/class/net"):
        for name in _NET:
            recording.text(place, name)
        recording.text(place, "uevent", _device_type)
        names = place.names()
        for name in () if isinstance(names, Missing) else names:
            if name in ("device", "master") or name.startswith("lower_"):
                recording.link(place, name)
            elif name in _NET_FOLDERS:
                recording.add(recording.path(place, name), "folder")
        port = place.folder("brport")
        if not isinstance(port, Missing) and port.has("bridge"):
            recording.link(port, "bridge")
        _behind(recording, place)


def _behind(recording: Recording, place: Folder) -> None:
    """Record the device behind an interface or RDMA device: its driver, and whether it is a virtual function."""
    device = place.folder("device")
    if not isinstance(device, Missing):
        for name in ("driver", "physfn"):
            if device.has(name):
                recording.link(device, name)
        recording.text(device, "numa_node")


def _device_type(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith("DEVTYPE="))


def _rdma(recording: Recording) -> None:
    for _, place in _class(recording, "sys/class/infiniband"):
        for name in _DEVICE:
            recording.text(place, name)
        recording.text(place, "node_guid", lambda text: f"{recording.redaction.guid(text.strip())}\n")
        if place.has("device"):
            recording.link(place, "device")
        _behind(recording, place)
        for _, port in _each(place, "ports"):
            _port(recording, port)
    for _, place in _class(recording, "sys/class/infiniband_verbs"):
        recording.text(place, "ibdev")
    here = recording.here
    if not isinstance(here.folder("dev"), Missing):
        recording.add("dev", "folder")
        names = here.names("dev/infiniband")
        for name in () if isinstance(names, Missing) else names:
            recording.add(f"dev/infiniband/{name}", "file")


def _port(recording: Recording, port: Folder) -> None:
    recording.add(recording.path(port), "folder")
    for name in _PORT:
        recording.text(port, name)
    for folder in ("counters", "hw_counters"):
        place, names = port.folder(folder), port.names(folder)
        for name in () if isinstance(place, Missing) or isinstance(names, Missing) else names:
            recording.text(port, f"{folder}/{name}", str)
    indexes = port.names("gids")
    if isinstance(indexes, Missing):
        return
    recording.add(recording.path(port, "gids"), "folder")
    for index in indexes:
        recording.text(port, f"gids/{index}", lambda text: f"{recording.redaction.gid(text.strip())}\n")
        for attribute in ("types", "ndevs"):
            recording.text(port, f"gid_attrs/{attribute}/{index}", str)


def _pci(recording: Recording) -> None:
    for address, place in _class(recording, "sys/bus/pci/devices"):
        if is_pci_address(address):
            above = (path for path in place.path.parents if is_pci_address(path.name))
            for path in (place.path, *above):
                _pci_device(recording, Folder(place.root, path))
    if recording.here.exists(TOPOLOGY_FILE):
        recording.add(TOPOLOGY_FILE, "file", b"")


def _pci_device(recording: Recording, place: Folder) -> None:
    for name in _PCI:
        recording.text(place, name, str)
    for name in ("driver", "physfn", "iommu_group"):
        if place.has(name):
            recording.link(place, name)
    group = place.folder("iommu_group")
    if not isinstance(group, Missing):
        recording.text(group, "type", str)
    for name in ("infiniband", "net"):
        if place.has(name):
            recording.add(recording.path(place, name), "folder")
    if is_bridge(place.line("class")):
        config = place.data("config", 4096)
        if not isinstance(config, Missing):
            recording.add(recording.path(place, "config"), "file", without_serial_number(config))


def _modules(recording: Recording) -> None:
    here = recording.here
    for folder in ("sys/class", "sys/kernel/iommu_groups"):
        if not isinstance(here.folder(folder), Missing):
            recording.add(folder, "folder")
    names = here.names("sys/module")
    if not isinstance(names, Missing):
        recording.add("sys/module", "folder")
        for name in names:
            recording.add(f"sys/module/{name}", "folder")
    # Of each line the name alone: root sees addresses of the kernel in it.
    recording.text(
        here, "proc/modules", lambda text: _lines(line.split(" ", 1)[0] for line in text.splitlines())
    )
    for path in _AS_IT_IS:
        recording.text(here, path)
    version = here.line("proc/version")
    if isinstance(version, str):  # who built it is left out
        recording.add("proc/version", "file", f"{' '.join(version.split()[:3])}\n".encode())


def _processes(recording: Recording) -> None:
    here = recording.here
    status = here.text("proc/self/status")
    if isinstance(status, str):  # the rest of it names the program and its user
        kept_lines = (line for line in status.splitlines() if line.startswith(_STATUS))
        recording.add("proc/self/status", "file", _lines(kept_lines).encode())
    text = here.text("proc/cpuinfo")
    if isinstance(text, str):
        flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
        recording.add("proc/cpuinfo", "file", f"{flags}\n".encode())
    mounts = here.text("proc/mounts")
    if isinstance(mounts, Missing):
        mounts = here.text("proc/self/mounts")
    if isinstance(mounts, str):  # sources and folders of others name servers and users
        kept_lines = (line for line in mounts.splitlines() if line.split(" ")[1:2] == ["/dev/shm"])
        recording.add("proc/mounts", "file", _lines(kept_lines).encode())


def _settings(recording: Recording) -> None:
    here, redaction = recording.here, recording.redaction
    for path in ("proc/sys/kernel/hostname", "etc/hostname"):
        recording.text(here, path, lambda text: f"{redaction.host(text.strip())}\n")
    if isinstance(here.folder("etc"), Missing):
        return
    recording.add("etc", "folder")
    text = here.text("etc/nccl.conf")
    settings = text if isinstance(text, Missing) else settings_in(text)
    if not isinstance(settings, Missing):
        shown = _shown(recording, settings)
        recording.add(
            "etc/nccl.conf", "file", _lines(f"{name}={value}" for name, value in shown.items()).encode()
        )


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
