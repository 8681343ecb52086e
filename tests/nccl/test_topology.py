"""GPU and NIC distances as NCCL computes them from the PCI path."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import PciDevice, RdmaPort
from ncclcheck.nccl import topology
from tests.nccl.hardware import UNREAD, bus, device, gpu, port

ROOT, UP, DOWN, DOWN2 = "0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:17:02.0"
SECOND_UP, SECOND_DOWN = "0000:18:00.0", "0000:19:00.0"
GPU, NIC = "0000:1b:00.0", "0000:1c:00.0"


def between(card: PciDevice, nic: PciDevice, rdma_port: RdmaPort | None = None) -> str | None:
    found = topology.gpu_nic(bus(card, nic), [rdma_port or port(pci=nic.address)])
    return found[0].distance if found else None


def test_the_same_switch_is_pix() -> None:
    assert between(gpu(GPU, ROOT, UP, DOWN), device(NIC, ROOT, UP, DOWN2)) == "PIX"


def test_a_switch_below_the_switch_is_pxb() -> None:
    cascaded = gpu(GPU, ROOT, UP, DOWN, SECOND_UP, SECOND_DOWN)
    assert between(cascaded, device(NIC, ROOT, UP, DOWN2)) == "PXB"
    assert between(cascaded, device(NIC, ROOT, UP, DOWN, SECOND_UP, "0000:19:01.0")) == "PIX"


def test_only_a_root_port_above_is_no_switch() -> None:
    assert between(gpu(GPU, "0000:00:01.0"), device(NIC, "0000:00:02.0")) == "PHB"
    assert between(gpu(GPU, "0000:00:01.0"), device(NIC, "0000:00:01.0")) == "PHB"


def test_a_bridge_below_a_root_port_counts_with_it_as_one() -> None:
    assert between(gpu(GPU, "0000:00:01.0", UP), device(NIC, "0000:00:01.0", "0000:16:01.0")) == "PIX"


def test_another_switch_is_phb_on_the_same_numa_node_else_sys() -> None:
    nic = device(NIC, "0000:37:01.0", "0000:38:00.0", "0000:39:00.0")
    far = device(NIC, "0000:b7:01.0", "0000:b8:00.0", "0000:b9:00.0", numa_node=1)
    assert between(gpu(GPU, ROOT, UP, DOWN), nic) == "PHB"
    assert between(gpu(GPU, ROOT, UP, DOWN), far) == "SYS"


def test_the_numa_node_is_that_of_the_topmost_switch() -> None:
    odd = bus(
        device(UP, ROOT, class_code="0x060400", numa_node=1),
        gpu(GPU, ROOT, UP, DOWN, numa_node=0),
        device(NIC, "0000:37:01.0", numa_node=1),
    )
    assert topology.gpu_nic(odd, [port(pci=NIC)])[0].distance == "PHB"


def test_without_numa_nodes_all_are_at_one_and_what_could_not_be_read_is_not_guessed() -> None:
    none = Missing("absent", "-1")
    denied = Missing("denied", "numa_node")
    nic = device(NIC, "0000:37:01.0", numa_node=none)
    assert between(gpu(GPU, "0000:15:01.0", numa_node=none), nic) == "PHB"
    assert between(gpu(GPU, "0000:15:01.0", numa_node=0), nic) is None
    assert between(gpu(GPU, "0000:15:01.0", numa_node=denied), device(NIC, numa_node=denied)) is None


@pytest.mark.parametrize("address", ["0000:1c:00.1", "0000:1c:00.3", "0000:1c:01.2"])
def test_functions_of_a_card_sit_where_the_card_sits(address: str) -> None:
    card = device(NIC, ROOT, UP, DOWN2)
    function = device(address, "0000:99:00.0", numa_node=1, is_vf=True)
    assert (
        topology.gpu_nic(bus(gpu(GPU, ROOT, UP, DOWN), card, function), [port(pci=address)])[0].distance
        == "PIX"
    )


def test_a_virtual_function_without_its_card_stands_for_itself() -> None:
    function = device("0000:1c:00.3", ROOT, UP, DOWN2, is_vf=True)
    assert between(gpu(GPU, ROOT, UP, DOWN), function) == "PIX"


def test_a_bridge_outside_the_four_digit_domains_ends_the_walk() -> None:
    assert (
        between(gpu(GPU, "10000:e0:01.0", "10000:e1:00.0"), device(NIC, "10000:e0:01.0", "10000:e1:00.0"))
        == "PHB"
    )


def test_gpus_are_nvidias_display_and_3d_controllers() -> None:
    devices = bus(
        gpu(GPU),
        gpu("0000:1d:00.0", class_code=UNREAD),
        device("0000:07:00.0", vendor="0x10de", class_code="0x068000"),
        device("0000:1b:00.1", vendor="0x10de", class_code="0x040300"),
        device("0000:08:00.0", vendor="0x1a03", class_code="0x030000"),
        device("0000:1e:00.0", vendor="0x10de", class_code="0x030000"),
    )
    assert topology.gpu_addresses(devices) == (GPU, "0000:1e:00.0")


def test_a_nic_whose_address_was_not_read_has_no_distance() -> None:
    assert (
        topology.gpu_nic(bus(gpu(GPU), device(NIC)), [port(pci=UNREAD), port("mlx5_1", pci="0000:99:00.0")])
        == ()
    )


def test_two_ports_of_a_device_are_one_nic() -> None:
    found = topology.gpu_nic(bus(gpu(GPU), device(NIC)), [port(pci=NIC), port(number=2, pci=NIC)])
    assert [nic.nic for nic in found] == ["mlx5_0"]


def test_the_card_of_an_address() -> None:
    assert topology.card_of("0000:1c:01.3") == "0000:1c:00.0"
    assert topology.card_of("0000:1c:01.3", merge_virtual_functions=False) == "0000:1c:01.0"
    assert topology.card_of("virtual") == "virtual"
