"""Of the PCI bus what matters to NCCL is kept: GPUs, network cards, the bridges above them, and known ACS."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.pci.pci import nvidia_gpus, read_pci
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci
from tests.facts.pci.test_pci_device import ACS, config
from tests.facts.trees import GPU, HCA, ROOT_PORT, Tree, gpu, roce_machine


def known(root: Path) -> Pci:
    pci = read_pci(root)
    assert not isinstance(pci, Missing)
    return pci


def addresses(root: Path) -> list[str]:
    return [device.address for device in known(root).devices]


def test_a_machine_with_a_gpu_and_an_hca_below_one_switch(tmp_path: Path) -> None:
    roce_machine(tmp_path)
    pci = known(tmp_path)
    assert [device.address for device in pci.devices] == [
        ROOT_PORT, "0000:16:00.0", "0000:17:00.0", "0000:17:02.0", HCA, GPU,
    ]  # fmt: skip
    assert [device.address for device in nvidia_gpus(pci)] == [GPU]
    assert decode(encode(pci), Pci) == pci


def test_the_data_direct_function_of_a_card_is_kept_whatever_its_class(tmp_path: Path) -> None:
    Tree(tmp_path).pci("pci0006:00", "0006:03:00.0", "0x088000", device="0x2100")
    Tree(tmp_path).pci("pci0006:00", "0006:04:00.0", "0x088000", device="0x2101")
    assert addresses(tmp_path) == ["0006:03:00.0"]


def test_the_topology_file_that_nccl_reads_before_the_bus_is_noted(tmp_path: Path) -> None:
    roce_machine(tmp_path)
    assert known(tmp_path).topology_file == ""
    (tmp_path / "run/nvidia-topologyd").mkdir(parents=True)
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "run/nvidia-topologyd/virtualTopology.xml").write_text("<system/>")
    assert known(tmp_path).topology_file == "/var/run/nvidia-topologyd/virtualTopology.xml"


def test_what_is_neither_gpu_nor_network_is_left_out(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number, code in enumerate(("0x010802", "0x040300", "0x060100", "0x060400", "0x0c0330", "0x088000")):
        tree.pci("pci0000:00", f"0000:00:{number:02x}.0", code, vendor="0x8086")
    assert addresses(tmp_path) == []


def test_switches_of_nvlink_accelerators_and_all_network_cards_are_kept(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number, (code, vendor) in enumerate(
        [("0x068000", "0x10de"), ("0x068000", "0x8086"), ("0x120000", "0x1da3"), ("0x020000", "0x8086"),
         ("0x0b4000", "0x8086"), ("0x030000", "0x1a03"), ("0x028000", "0x15b3")]
    ):  # fmt: skip
        tree.pci("pci0000:00", f"0000:00:{number:02x}.0", code, vendor=vendor)
    assert addresses(tmp_path) == [f"0000:00:{number:02x}.0" for number in (0, 2, 3, 4, 5, 6)]


def test_a_gpu_is_of_nvidia_and_neither_its_audio_function_nor_another_display(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    gpu(tree, "pci0000:15", "0000:1b:00.0")
    tree.pci("pci0000:15", "0000:1b:00.1", "0x040300", vendor="0x10de")
    tree.pci("pci0000:15", "0000:03:00.0", "0x030000", vendor="0x1a03")
    tree.pci("pci0000:15", "0000:05:00.0", "0x030000", vendor="0x10de")
    assert [device.address for device in nvidia_gpus(known(tmp_path))] == ["0000:05:00.0", "0000:1b:00.0"]


def test_a_card_of_unknown_class_with_a_network_interface_is_kept(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    card = tree.pci("pci0000:15", HCA, "0xff0000")
    tree.interface("eth0", 2, card)
    assert addresses(tmp_path) == [HCA]


def test_a_bridge_with_nothing_below_it_is_kept_for_its_acs(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.pci("pci0000:15", ROOT_PORT, "0x060400", config=config((0x100, ACS, 0x0C)))
    tree.pci("pci0000:15", "0000:15:02.0", "0x060400", config=config((0x100, ACS, 0x0C), size=64))
    (bridge,) = known(tmp_path).devices
    assert (bridge.address, bridge.acs_redirect) == (ROOT_PORT, True)


def test_a_bridge_is_found_above_its_card_though_the_bus_does_not_list_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.files(f"sys/devices/pci0000:15/{ROOT_PORT}", {"class": "0x060400"})
    tree.pci(f"pci0000:15/{ROOT_PORT}", HCA, "0x020700")
    assert addresses(tmp_path) == [ROOT_PORT, HCA]


def test_addresses_of_large_domains_come_last(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for address in ("10000:01:00.0", "0000:e1:00.0", "0001:00:00.0"):
        tree.pci("pci0000:15", address, "0x020000")
    assert addresses(tmp_path) == ["0000:e1:00.0", "0001:00:00.0", "10000:01:00.0"]


def test_plain_folders_in_the_place_of_links_tell_no_bridges(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"sys/bus/pci/devices/{GPU}", {"class": "0x030200", "vendor": "0x10de"})
    (device,) = known(tmp_path).devices
    assert device.upstream == ()
    assert isinstance(device.numa_node, Missing)


def test_links_that_dangle_or_lead_out_are_no_devices(tmp_path: Path) -> None:
    root = tmp_path / "root"
    tree = Tree(root)
    Tree(tmp_path / "other").files("0000:99:00.0", {"class": "0x030200", "vendor": "0x10de"})
    tree.link("sys/bus/pci/devices/0000:01:00.0", "sys/devices/gone")
    (root / "sys/bus/pci/devices/0000:99:00.0").symlink_to("../../../../../other/0000:99:00.0")
    tree.pci("pci0000:00", "0000:02:00.0", "0x030200")
    (root / "sys/devices/pci0000:00/0000:02:00.0/class").unlink()
    tree.pci("pci0000:00", "0000:03:00.0", "0x010802")
    assert addresses(root) == []
    pci = read_pci(root)
    assert not isinstance(pci, Missing)
    assert set(pci.unread) == {"0000:01:00.0", "0000:02:00.0", "0000:99:00.0"}


def test_without_a_bus_the_section_is_missing(tmp_path: Path) -> None:
    assert isinstance(read_pci(tmp_path), Missing)
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    assert addresses(tmp_path) == []
