"""What /sys tells of an interface: speed, master, the interfaces below it, VLANs, virtual functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.network.interface_files import InterfaceReading, complete, read_speed
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from tests.facts.trees import HCA, Tree

NO_DRIVER = Missing("absent", "not asked")


def told(name: str, number: int = 1) -> InterfaceReading:
    return InterfaceReading(name, 2, 1500, ("up",), False, (), NO_DRIVER, number)


def interface(root: Path, name: str, number: int = 1) -> Interface:
    return complete(machine(root), told(name, number))


@pytest.mark.parametrize("text", ["-1", "4294967295", "0"])
def test_a_speed_the_driver_does_not_know_is_missing(tmp_path: Path, text: str) -> None:
    Tree(tmp_path).files("", {"speed": text})
    speed = read_speed(machine(tmp_path))
    assert isinstance(speed, Missing)
    assert text in speed.detail


def test_a_speed_is_what_the_file_says_and_no_file_is_no_speed(tmp_path: Path) -> None:
    absent = read_speed(machine(tmp_path))
    assert isinstance(absent, Missing)
    assert absent.missing == "absent"
    tree = Tree(tmp_path)
    tree.files("", {"speed": "200000"})
    assert read_speed(machine(tmp_path)) == 200_000
    tree.files("", {"speed": "Invalid argument"})
    refused = read_speed(machine(tmp_path))
    assert isinstance(refused, Missing)
    assert refused.missing == "unsupported"


def test_a_card_with_its_driver(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    card = tree.pci("pci0000:15", HCA, "0x020000")
    tree.driver(card, "mlx5_core")
    tree.interface("eth0", 2, card)
    seen = interface(tmp_path, "eth0")
    assert (seen.kind, seen.pci, seen.driver, seen.operstate) == ("physical", HCA, "mlx5_core", "up")
    assert (seen.master, seen.lower, seen.is_vf) == (None, (), False)


def test_a_virtual_function_is_physical_and_said_to_be_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    card = tree.pci("pci0000:15", "0000:18:00.3", "0x020000")
    tree.link(f"sys/devices/{card}/physfn", f"sys/devices/pci0000:15/{HCA}")
    tree.interface("net1", 2, card)
    seen = interface(tmp_path, "net1")
    assert (seen.kind, seen.is_vf) == ("physical", True)


def test_a_bond_and_what_is_below_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    bond = tree.interface("bond0", 4)
    tree.files(f"{bond}/bonding", {"mode": "802.3ad 4"})
    tree.link("sys/devices/virtual/net/bond0/lower_eth10", "sys/devices/virtual/net/eth10")
    tree.link("sys/devices/virtual/net/bond0/lower_eth9", "sys/devices/virtual/net/eth9")
    slave = tree.interface("eth9", 2)
    tree.link(f"{slave}/master", bond)
    assert interface(tmp_path, "bond0").kind == "bond"
    assert interface(tmp_path, "bond0").lower == ("eth9", "eth10")
    assert interface(tmp_path, "eth9").master == "bond0"


def test_a_bridge_and_its_port_on_an_old_kernel(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    bridge = tree.interface("br0", 4)
    tree.files(f"{bridge}/bridge", {"stp_state": "0"})
    port = tree.interface("veth1", 5)
    tree.link(f"{port}/brport/bridge", bridge)
    assert interface(tmp_path, "br0").kind == "bridge"
    assert (interface(tmp_path, "veth1").kind, interface(tmp_path, "veth1").master) == ("virtual", "br0")


def test_a_vlan_is_one_by_its_uevent_or_by_the_list_of_them(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.interface("eth0.100", 4, uevent="DEVTYPE=vlan")
    tree.interface("storage", 5)
    assert (interface(tmp_path, "eth0.100").kind, interface(tmp_path, "storage").kind) == ("vlan", "virtual")
    head = "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n"
    tree.files("proc/net/vlan", {"config": f"{head}storage        | 100  | eth0"})
    assert interface(tmp_path, "storage").kind == "vlan"


def test_ipoib_is_one_by_its_type(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.interface("ib0", 2, tree.pci("pci0000:15", HCA, "0x020700"))
    assert interface(tmp_path, "ib0", 32).kind == "ipoib"


def test_hidden_sys_leaves_its_values_missing(tmp_path: Path) -> None:
    seen = interface(tmp_path, "lo", 772)
    assert (seen.kind, seen.mtu, seen.index) == ("loopback", 1500, 2)
    for fact in (seen.operstate, seen.speed_mbps, seen.pci):
        assert isinstance(fact, Missing)


def test_a_driver_asked_elsewhere_counts_where_no_device_tells_one(tmp_path: Path) -> None:
    Tree(tmp_path).interface("macvlan0", 2)
    seen = complete(machine(tmp_path), InterfaceReading("macvlan0", 2, 1500, (), False, (), "macvlan", 1))
    assert (seen.kind, seen.driver, seen.tunnel) == ("virtual", "macvlan", "macvlan")


def test_a_file_in_the_place_of_the_folder_is_no_folder(tmp_path: Path) -> None:
    Tree(tmp_path).files("sys/class/net", {"bonding_masters": "bond0"})
    assert isinstance(machine(tmp_path).folder("sys/class/net/bonding_masters"), Missing)
    assert isinstance(machine(tmp_path), Folder)
