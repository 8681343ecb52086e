"""Reads the PCI bus as far as it matters to NCCL: GPUs, network cards, what lies between them, and ACS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ncclcheck.facts.pci.pci_address import is_pci_address
from ncclcheck.facts.pci.pci_device import is_bridge, read_device
from ncclcheck.facts.section import Section
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import Pci, PciDevice

_DEVICES = "sys/bus/pci/devices"
# NCCL src/graph/topo.cc (ncclTopoGetSystem), 2.5 to 2.30; in virtual machines NVIDIA's nvidia-topologyd writes it.
TOPOLOGY_FILE = "var/run/nvidia-topologyd/virtualTopology.xml"
NVIDIA = "0x10de"
# Base classes of the PCI Code and ID Assignment Specification: network, display, co-processor, accelerator.
_WANTED_CLASSES = ("0x02", "0x03", "0x0b", "0x12")
# The function by which a ConnectX-8 reaches GPUs past the CPU: Linux drivers/infiniband/hw/mlx5/data_direct.c
_DATA_DIRECT = ("0x15b3", "0x2100")
_NVSWITCH_CLASS = "0x0680"  # "other bridge"


def read_pci(root: Path) -> Fact[Pci]:
    """Return the devices that matter on the machine below `root`, in the order of their addresses.

    Those are display, network, co-processor and accelerator devices, NVSwitches, data-direct functions, whatever
    carries an RDMA device or a network interface, all bridges above these, and each bridge whose ACS settings could be
    read.
    """
    here = machine(root)
    names = here.names(_DEVICES)
    if isinstance(names, Missing):
        return names
    read = {name: here.folder(f"{_DEVICES}/{name}") for name in names if is_pci_address(name)}
    folders = {name: folder for name, folder in read.items() if not isinstance(folder, Missing)}
    unread = {name: folder.detail for name, folder in read.items() if isinstance(folder, Missing)}
    unread |= {
        name: code.detail
        for name, folder in folders.items()
        if isinstance(code := folder.line("class"), Missing) and not _is_wanted(folder)
    }
    ends = {name: folder for name, folder in folders.items() if _is_wanted(folder)}
    above = {name: place for folder in ends.values() for name, place in _bridges_above(folder)}
    bridges = [
        read_device(name, folder) for name, folder in folders.items() if is_bridge(folder.line("class"))
    ]
    found = {bridge.address: bridge for bridge in bridges if not isinstance(bridge.acs_redirect, Missing)}
    found |= {name: read_device(name, folder) for name, folder in [*above.items(), *ends.items()]}
    devices = tuple(sorted(found.values(), key=lambda device: _order(device.address)))
    return Pci(devices, unread, f"/{TOPOLOGY_FILE}" if here.exists(TOPOLOGY_FILE) else "")


def nvidia_gpus(pci: Pci) -> tuple[PciDevice, ...]:
    """Return the display and 3D controllers of NVIDIA: neither NVSwitches nor the audio functions of their cards."""
    return tuple(
        device
        for device in pci.devices
        if device.vendor == NVIDIA
        and isinstance(device.class_code, str)
        and device.class_code.startswith("0x03")
    )


def _is_wanted(folder: Folder) -> bool:
    code = folder.line("class")
    if isinstance(code, str) and code.startswith(_WANTED_CLASSES):
        return True
    if isinstance(code, str) and code.startswith(_NVSWITCH_CLASS):
        return folder.line("vendor") == NVIDIA
    if (folder.line("vendor"), folder.line("device")) == _DATA_DIRECT:
        return True
    return not is_bridge(code) and (folder.has("infiniband") or folder.has("net"))


def _bridges_above(folder: Folder) -> Iterator[tuple[str, Folder]]:
    for path in folder.path.parents:
        if is_pci_address(path.name):
            yield path.name, Folder(folder.root, path)


def _order(address: str) -> tuple[int, str]:
    """Return a sort key: addresses sort as numbers; only the domain has no fixed length."""
    domain, _, rest = address.partition(":")
    return int(domain, 16), rest


PCI = Section(
    {"pci": "/sys/bus/pci/devices"},
    read=lambda _: read_pci(Path("/")),
    read_tree=lambda here: read_pci(here.root),
)
