"""The PCIe links between a device and the root."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.pcie_path import least, paths, unplaced
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci
from tests.hardware_builders import above_gpu, above_nic, gpu_of, healthy_pci, healthy_rdma, ib_ports, nic_of
from tests.nccl.hardware import device as pci_device
from tests.nccl.hardware import port

LOST = Missing("error", "lost")


def test_one_path_per_gpu_and_nic_from_the_root_down() -> None:
    found = paths(healthy_pci(), healthy_rdma())
    assert len(found) == 16
    assert next(path.label for path in found if path.is_gpu) == f"GPU {gpu_of(0)}"
    nic = next(path for path in found if path.device.address == nic_of(2))
    assert nic.label == f"mlx5_2 ({nic_of(2)})"
    assert [hop.address for hop in nic.hops] == [*above_nic(2), nic_of(2)]
    assert tuple(bridge.address for bridge in found[0].bridges) == above_gpu(0)


def test_both_devices_of_a_card_are_named_and_virtual_functions_left_out() -> None:
    two = (ib_ports()[0], replace(ib_ports()[1], pci=nic_of(0)))
    labels = [path.label for path in paths(healthy_pci(), healthy_rdma(*two)) if not path.is_gpu]
    assert labels == [f"mlx5_0+mlx5_1 ({nic_of(0)})"]
    lone = Pci(tuple(replace(device, is_vf=device.address == nic_of(0)) for device in healthy_pci().devices))
    assert [path for path in paths(lone, healthy_rdma(*two)) if not path.is_gpu] == []
    assert unplaced(lone, healthy_rdma(*two)) == ("mlx5_0", "mlx5_1")


def test_a_virtual_function_stands_for_its_card() -> None:
    address = nic_of(0)[:-1] + "3"
    function = pci_device(address, *above_nic(0), is_vf=True)
    found = paths(Pci((*healthy_pci().devices, function)), healthy_rdma(port("mlx5_9", pci=address)))
    assert [path.label for path in found if not path.is_gpu] == [f"mlx5_9 ({nic_of(0)})"]


def test_a_device_that_is_not_on_the_bus_is_unplaced() -> None:
    assert unplaced(healthy_pci(), healthy_rdma()) == ()
    assert unplaced(healthy_pci(), healthy_rdma(port("mlx5_0", pci="0000:ff:00.0"))) == ("mlx5_0",)
    assert unplaced(healthy_pci(), healthy_rdma(port("mlx5_0", pci=LOST))) == ("mlx5_0",)


def test_without_rdma_the_gpus_remain() -> None:
    assert {path.names for path in paths(healthy_pci(), LOST)} == {("GPU",)}


def test_the_least_of_what_was_read() -> None:
    assert least([16, LOST, 8]) == 8
    assert least([LOST]) is None
