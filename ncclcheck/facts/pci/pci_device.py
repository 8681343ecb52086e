"""Reads one device of the PCI bus: what it is, its link, its NUMA node, and what a bridge does with peer traffic."""

from __future__ import annotations

import re

from ncclcheck.facts.pci.pci_address import pci_addresses
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import PciDevice

_HEXADECIMAL = re.compile(r"0x[0-9a-f]{4,6}", re.ASCII | re.IGNORECASE)
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s(?: PCIe)?", re.ASCII)
# No link; a device that does not answer; PCIE_LNK_WIDTH_UNKNOWN of linux/pci.h.
_NO_WIDTHS = (0, 63, 255)

_IOMMU_TYPES = ("blocked", "identity", "unmanaged", "DMA", "DMA-FQ", "DMA-SQ")  # Linux, drivers/iommu/iommu.c
BRIDGE_CLASSES = ("0x0604", "0x0609")  # PCI-to-PCI bridges: ports of roots and switches
_CONFIG_BYTES = 4096  # PCI Express Base Specification: 256 bytes, and extended capabilities from there
_UNPRIVILEGED_BYTES = 64
_EXTENDED_START = 0x100
_HEADER_BYTES = 4
_NO_ANSWER = b"\xff\xff\xff\xff"  # what is read from a device that is gone
_CAPABILITY_ACS = 0x000D
_CAPABILITY_SERIAL_NUMBER = 0x0003
_ACS_REDIRECT = 0x04 | 0x08  # P2P Request Redirect and P2P Completion Redirect of the ACS control register


def read_device(address: str, folder: Folder) -> PciDevice:
    """Return all that /sys shows of the device in `folder`; the bridges above it are those of its resolved path."""
    class_code = _code(folder, "class")
    return PciDevice(
        address=address,
        vendor=_code(folder, "vendor"),
        device=_code(folder, "device"),
        class_code=class_code,
        numa_node=numa_node(folder, "numa_node"),
        driver=folder.link_name("driver"),
        link_speed_gt_s=_speed(folder, "current_link_speed"),
        link_width=_width(folder, "current_link_width"),
        max_link_speed_gt_s=_speed(folder, "max_link_speed"),
        max_link_width=_width(folder, "max_link_width"),
        acs_redirect=_acs_redirect(folder, class_code),
        upstream=tuple(
            part for part in pci_addresses(folder.path.relative_to(folder.root).parts) if part != address
        ),
        is_vf=folder.has("physfn"),
        iommu=_iommu(folder),
    )


def _iommu(folder: Folder) -> Fact[str]:
    """Return the type of its IOMMU group's default domain (Linux 5.11, ABI/testing/sysfs-kernel-iommu_groups).

    A device without a group is under no IOMMU, where the kernel has a list of groups at all.
    """
    if folder.has("iommu_group"):
        kind = folder.line("iommu_group/type")
        if isinstance(kind, Missing) or kind in _IOMMU_TYPES:
            return kind
        return Missing("error", f"{folder.shown('iommu_group/type')}: {kind[:80]!r}")
    groups = Folder(folder.root, folder.root).folder("sys/kernel/iommu_groups")
    return groups if isinstance(groups, Missing) else "off"


def numa_node(folder: Folder, name: str) -> Fact[int]:
    """Return the NUMA node; -1 means that the firmware names none (NUMA_NO_NODE of linux/numa.h)."""
    node = folder.number(name)
    if isinstance(node, int) and node < 0:
        return Missing("absent", f"{folder.shown(name)}: {node}, the firmware names no node")
    return node


def is_bridge(class_code: Fact[str]) -> bool:
    """Return True for a class code of a bridge that has a bus below it."""
    return isinstance(class_code, str) and class_code.startswith(BRIDGE_CLASSES)


def acs_redirects(config: bytes) -> bool | None:
    """Return whether ACS sends peer-to-peer requests or completions to the root complex; None where `config` lacks it.

    A device without the capability redirects nothing. A user without CAP_SYS_ADMIN gets 64 bytes only, and a kernel
    without access to the extended space 256 (drivers/pci/pci-sysfs.c). PCI Express Base Specification: extended
    capability header (id, version, offset of the next), Access Control Services capability.
    """
    offset = _EXTENDED_START
    seen: set[int] = set()
    while offset >= _EXTENDED_START and offset not in seen:
        header = config[offset : offset + 4]
        if len(header) < _HEADER_BYTES or header == _NO_ANSWER:
            return None
        seen.add(offset)
        value = int.from_bytes(header, "little")
        if value & 0xFFFF == _CAPABILITY_ACS:
            control = config[offset + 6 : offset + 7]  # the lower byte has both bits
            return bool(control[0] & _ACS_REDIRECT) if control else None
        offset = (value >> 20) & 0xFFC
    return False


def _acs_redirect(folder: Folder, class_code: Fact[str]) -> Fact[bool]:
    if not is_bridge(class_code):
        return Missing("unsupported", "asked of bridges only")
    config = folder.data("config", _CONFIG_BYTES)
    if isinstance(config, Missing):
        return config
    redirects = acs_redirects(config)
    if redirects is None:
        detail = f"{folder.shown('config')}: {len(config)} bytes, no extended capabilities to be read"
        return Missing("denied" if len(config) <= _UNPRIVILEGED_BYTES else "unsupported", detail)
    return redirects


def _code(folder: Folder, name: str) -> Fact[str]:
    text = folder.line(name)
    if isinstance(text, Missing) or _HEXADECIMAL.fullmatch(text):
        return text
    return Missing("error", f"{folder.shown(name)}: {text[:80]!r}")


def _speed(folder: Folder, name: str) -> Fact[float]:
    text = folder.line(name)
    if isinstance(text, Missing):
        return text
    match = _SPEED.fullmatch(text)
    # A port without a link says "Unknown" (pci_speed_string of drivers/pci/probe.c).
    return float(match[1]) if match else Missing("absent", f"{folder.shown(name)}: {text[:80]!r}")


def _width(folder: Folder, name: str) -> Fact[int]:
    width = folder.number(name)
    if isinstance(width, int) and (width in _NO_WIDTHS or width < 0):
        return Missing("absent", f"{folder.shown(name)}: {width}, there is no link")
    return width


def without_serial_number(config: bytes) -> bytes:
    """Return the configuration space with zeros for the serial number of the device, where it has one.

    PCI Express Base Specification: Device Serial Number capability, eight bytes after its header.
    """
    cleared, offset = bytearray(config), _EXTENDED_START
    seen: set[int] = set()
    while offset >= _EXTENDED_START and offset not in seen and offset + _HEADER_BYTES <= len(config):
        seen.add(offset)
        value = int.from_bytes(config[offset : offset + _HEADER_BYTES], "little")
        if value & 0xFFFF == _CAPABILITY_SERIAL_NUMBER:
            end = min(offset + 12, len(config))
            cleared[offset + 4 : end] = bytes(max(end - offset - 4, 0))
        offset = (value >> 20) & 0xFFC
    return bytes(cleared)
