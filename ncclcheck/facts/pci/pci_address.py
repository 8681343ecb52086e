"""Finds PCI addresses in the paths of /sys/devices, where each bridge is a folder above what hangs below it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import Fact, Missing

# Domain, bus, device, function; a domain above 0xffff has more than four digits (Intel VMD, Hyper-V).
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]", re.ASCII)
# Bus, port path and interface, as drivers/usb/core names them: usb1, 1-1.4, 1-1.4:1.0.
_USB = re.compile(r"usb[0-9]+|[0-9]+-[0-9]+(?:\.[0-9]+)*(?::[0-9]+\.[0-9]+)?", re.ASCII)


def is_pci_address(name: str) -> bool:
    """Return True for a name such as 0000:18:00.0."""
    return _ADDRESS.fullmatch(name) is not None


def pci_addresses(parts: Iterable[str]) -> tuple[str, ...]:
    """Return the parts of a path that are PCI addresses, the root port first."""
    return tuple(part for part in parts if is_pci_address(part))


def pci_of(folder: Folder, link: str = "device") -> Fact[str]:
    """Return the address of the PCI card behind `folder` of /sys, also below virtio and auxiliary devices.

    Something on USB is on no card, although the controller of its bus is one. Without the link the folder's own place
    in /sys/devices gives it.
    """
    linked_folder = folder.folder(link)
    if isinstance(linked_folder, Missing) and linked_folder.missing != "absent":
        return linked_folder
    device = folder if isinstance(linked_folder, Missing) else linked_folder
    for part in reversed(device.path.relative_to(device.root).parts):
        if is_pci_address(part):
            return part
        if _USB.fullmatch(part):
            return Missing("absent", f"{device.shown()} is on USB")
    return Missing("absent", f"{device.shown()} is on no PCI bus")
