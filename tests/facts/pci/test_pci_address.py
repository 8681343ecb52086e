"""The card behind a device is the nearest PCI function above it, unless it hangs on USB."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.pci.pci_address import is_pci_address, pci_addresses, pci_of
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Missing
from tests.facts.trees import Tree


@pytest.mark.parametrize("name", ["0000:18:00.0", "10000:e1:00.0", "0035:03:1f.7", "80000001:00:02.0"])
def test_addresses_with_every_length_of_domain(name: str) -> None:
    assert is_pci_address(name)


@pytest.mark.parametrize(
    "name", ["pci0000:00", "18:00.0", "0000:18:00.8", "0000:18:20.0", "0000:18:00.0\n", "virtio0"]
)
def test_other_names_are_no_addresses(name: str) -> None:
    assert not is_pci_address(name)


def test_the_addresses_of_a_path_begin_at_the_root_port() -> None:
    path = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/infiniband/mlx5_0"
    assert pci_addresses(path.split("/")) == ("0000:15:01.0", "0000:16:00.0")


def _interface(root: Path, device: str) -> Folder:
    tree = Tree(root)
    (root / "sys/devices" / device).mkdir(parents=True)
    tree.link("sys/class/net/eth0/device", f"sys/devices/{device}")
    folder = machine(root).folder("sys/class/net/eth0")
    assert isinstance(folder, Folder)
    return folder


@pytest.mark.parametrize(
    ("device", "address"),
    [
        ("pci0000:15/0000:15:01.0/0000:17:00.0", "0000:17:00.0"),
        ("pci0000:00/0000:00:03.0/virtio2", "0000:00:03.0"),
        ("pci0000:3a/0000:3b:00.1/mlx5_core.sf.4", "0000:3b:00.1"),
        ("pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0", "10000:e1:00.0"),
    ],
)
def test_the_card_is_found_through_what_lies_between(tmp_path: Path, device: str, address: str) -> None:
    assert pci_of(_interface(tmp_path, device)) == address


@pytest.mark.parametrize(
    "device",
    ["pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0", "LNXSYSTM:00/VMBUS:00/vmbus_1", "platform/soc/1000.eth"],
)
def test_what_is_not_on_pci_has_no_address_there(tmp_path: Path, device: str) -> None:
    pci = pci_of(_interface(tmp_path, device))
    assert isinstance(pci, Missing)
    assert pci.missing == "absent"


def test_a_device_link_that_leads_out_is_not_replaced_by_a_guess(tmp_path: Path) -> None:
    root = tmp_path / "root"
    folder = root / "sys/devices/pci0000:15/0000:17:00.0/net/eth0"
    folder.mkdir(parents=True)
    place = machine(root).folder("sys/devices/pci0000:15/0000:17:00.0/net/eth0")
    assert isinstance(place, Folder)
    assert pci_of(place) == "0000:17:00.0"
    (folder / "device").symlink_to("../" * 20)
    pci = pci_of(place)
    assert isinstance(pci, Missing)
    assert pci.missing == "denied"
