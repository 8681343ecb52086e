"""One PCI device: its link, its node, and what its config space says of ACS."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ncclcheck.facts.pci.pci_device import acs_redirects, read_device, without_serial_number
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import PciDevice
from tests.facts.trees import GPU, HCA, ROOT_PORT, SWITCH, Tree, gpu, switch

ACS, AER = 0x000D, 0x0001


def config(*capabilities: tuple[int, int, int], size: int = 4096) -> bytes:
    """A config space with extended capabilities (offset, id, ACS control), chained in that order from 0x100."""
    space = bytearray(4096)
    offsets = [offset for offset, _, _ in capabilities]
    for (offset, number, control), following in zip(capabilities, [*offsets[1:], 0], strict=False):
        struct.pack_into("<IHH", space, offset, number | 1 << 16 | following << 20, 0x00FF, control)
    return bytes(space[:size])


@pytest.mark.parametrize(
    ("control", "redirects"),
    [
        (0x0000, False),
        (0x0001, False),
        (0x0010, False),
        (0x0004, True),
        (0x0008, True),
        (0x001D, True),
        (0x0073, False),
    ],
)
def test_acs_redirects_by_its_request_and_completion_bits(control: int, redirects: bool) -> None:
    assert acs_redirects(config((0x100, ACS, control))) is redirects
    assert acs_redirects(config((0x100, AER, 0xFFFF), (0x148, ACS, control))) is redirects
    assert acs_redirects(config((0x100, AER, 0), (0xFF0, ACS, control))) is redirects


def test_a_bridge_without_the_capability_redirects_nothing() -> None:
    assert acs_redirects(config()) is False
    assert acs_redirects(config((0x100, AER, 0x000C))) is False


@pytest.mark.parametrize("size", [0, 64, 256, 259])
def test_without_the_extended_space_nothing_is_known(size: int) -> None:
    assert acs_redirects(config((0x100, ACS, 0x0C), size=size)) is None


def test_a_damaged_config_space_tells_nothing_and_never_ends_in_a_ring() -> None:
    assert acs_redirects(config((0x100, AER, 0), (0x200, ACS, 0x0C), size=0x206)) is None
    assert acs_redirects(b"\xff" * 4096) is None
    ring = config((0x100, AER, 0), (0x200, AER, 0))
    struct_header = struct.pack("<I", AER | 1 << 16 | 0x100 << 20)
    assert acs_redirects(ring[:0x200] + struct_header + ring[0x204:]) is False


def device(root: Path, folder: str, address: str) -> PciDevice:
    place = machine(root).folder(f"sys/devices/{folder}")
    assert isinstance(place, Folder)
    return read_device(address, place)


def test_a_gpu_below_a_switch(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    _, port = switch(tree)
    told = device(tmp_path, gpu(tree, port), GPU)
    assert (told.vendor, told.device, told.class_code, told.driver) == (
        "0x10de",
        "0x2330",
        "0x030200",
        "nvidia",
    )
    assert (told.link_speed_gt_s, told.link_width) == (32.0, 16)
    assert (told.max_link_speed_gt_s, told.max_link_width) == (32.0, 16)
    assert told.upstream == (ROOT_PORT, "0000:16:00.0", "0000:17:02.0")
    assert told.numa_node == 0
    assert not told.is_vf
    assert isinstance(told.acs_redirect, Missing)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("numa_node", "-1"),
        ("numa_node", "Invalid argument"),
        ("current_link_speed", "Unknown"),
        ("current_link_speed", "Unknown speed"),
        ("current_link_width", "0"),
        ("current_link_width", "63"),
        ("max_link_width", "255"),
        ("max_link_speed", "fast"),
        ("vendor", "nvidia"),
        ("class", "0x03;rm"),
    ],
)
def test_what_the_kernel_does_not_know_is_missing(tmp_path: Path, name: str, text: str) -> None:
    tree = Tree(tmp_path)
    folder = gpu(tree, "pci0000:15")
    tree.files(f"sys/devices/{folder}", {name: text})
    told = device(tmp_path, folder, GPU)
    field = {
        "class": "class_code",
        "current_link_speed": "link_speed_gt_s",
        "current_link_width": "link_width",
        "max_link_speed": "max_link_speed_gt_s",
    }.get(name, name)
    missing = [
        struct_field
        for struct_field in PciDevice.__struct_fields__
        if isinstance(getattr(told, struct_field), Missing)
    ]
    assert missing == [*sorted({field, "acs_redirect", "iommu"}, key=PciDevice.__struct_fields__.index)]


@pytest.mark.parametrize(
    ("text", "speed"), [("2.5 GT/s PCIe", 2.5), ("8 GT/s", 8.0), ("64.0 GT/s PCIe", 64.0)]
)
def test_speeds_of_old_and_new_kernels(tmp_path: Path, text: str, speed: float) -> None:
    tree = Tree(tmp_path)
    folder = tree.pci("pci0000:15", HCA, "0x020700", current_link_speed=text)
    assert device(tmp_path, folder, HCA).link_speed_gt_s == speed


def test_a_virtual_function_links_to_its_card(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.pci(SWITCH, HCA, "0x020700")
    folder = tree.pci(SWITCH, "0000:18:00.3", "0x020700")
    tree.link(f"sys/devices/{folder}/physfn", f"sys/devices/{SWITCH}/{HCA}")
    assert device(tmp_path, folder, "0000:18:00.3").is_vf


@pytest.mark.parametrize(("size", "why"), [(64, "denied"), (256, "unsupported")])
def test_a_short_config_file_of_a_bridge_is_missing_with_its_cause(
    tmp_path: Path, size: int, why: str
) -> None:
    tree = Tree(tmp_path)
    folder = tree.pci("pci0000:15", ROOT_PORT, "0x060400", config=config((0x100, ACS, 0x0C), size=size))
    told = device(tmp_path, folder, ROOT_PORT).acs_redirect
    assert isinstance(told, Missing)
    assert told.missing == why


def test_the_serial_number_is_cleared_and_the_rest_stays() -> None:
    config = bytearray(4096)
    config[0x100:0x104] = (0x0003 | 1 << 16 | 0x140 << 20).to_bytes(4, "little")
    config[0x104:0x10C] = b"\xaa" * 8
    config[0x10C] = 7
    config[0x140:0x144] = (0x000D | 1 << 16).to_bytes(4, "little")
    config[0x146] = 0x04
    cleared = without_serial_number(bytes(config))
    assert cleared[0x104:0x10C] == bytes(8)
    assert (cleared[0x10C], len(cleared)) == (7, 4096)
    assert acs_redirects(cleared) is True
    for length in (0, 64, 256, 0x104, 0x108):
        assert len(without_serial_number(bytes(config[:length]))) == length


@pytest.mark.parametrize(
    ("kind", "expected"), [("DMA-FQ", "DMA-FQ"), ("identity", "identity"), (None, "off")]
)
def test_how_the_iommu_treats_a_device_is_told_by_its_group(
    tmp_path: Path, kind: str | None, expected: str
) -> None:
    tree = Tree(tmp_path)
    folder = gpu(tree, "pci0000:15")
    tree.files("sys/kernel/iommu_groups/7", {"type": kind or "DMA"})
    if kind is not None:
        tree.link(f"sys/devices/{folder}/iommu_group", "sys/kernel/iommu_groups/7")
    assert device(tmp_path, folder, GPU).iommu == expected
