"""How many network devices the ports of NET/IB are, by version and setting."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci, RdmaPort
from ncclcheck.nccl import topology
from ncclcheck.nccl.rdma import fusion, hca
from tests.nccl.hardware import UNREAD, bus, device, port, roce

A0, A1 = port("mlx5_0", pci="0000:1c:00.0"), port("mlx5_1", pci="0000:1c:00.1")
B0, B1 = port("mlx5_2", pci="0000:5c:00.0"), port("mlx5_3", pci="0000:5c:00.1")
V = "2.28.9"


def groups(*ports: RdmaPort, version: str = V, pci: Pci | None = None, **environment: str) -> list[str] | str:
    named = {f"NCCL_{name}": value for name, value in environment.items()}
    devices = fusion.network_devices(ports, named, version, topology.positions(pci) if pci else {})
    if isinstance(devices, Missing):
        return devices.detail
    return ["+".join(hca.name_of(rdma_port) for rdma_port in device) for device in devices]


def test_both_ports_of_a_card_are_one_device_from_2_20() -> None:
    apart = ["mlx5_0:1", "mlx5_1:1"]
    assert groups(A0, A1, version="2.19.3") == apart
    for version in ("2.20.5", "2.23.4", "2.24.3", V, "2.32.3"):
        assert groups(A0, A1, version=version) == ["mlx5_0:1+mlx5_1:1"]
        assert groups(A0, A1, version=version, IB_MERGE_NICS="0") == apart


def test_cards_that_differ_are_merged_except_in_2_22_and_2_23() -> None:
    merged, apart = ["mlx5_0:1+mlx5_1:1", "mlx5_2:1"], ["mlx5_0:1", "mlx5_1:1", "mlx5_2:1"]
    assert groups(A0, A1, B0, version="2.21.5") == merged
    assert groups(A0, A1, B0, version="2.22.3") == groups(A0, A1, B0, version="2.23.4") == apart
    assert groups(A0, A1, B0, version="2.24.3") == merged


def test_at_most_two_ports_before_2_24_and_four_since() -> None:
    ports = [port(f"mlx5_{number}", pci=f"0000:1c:00.{number}") for number in range(6)]
    assert [len(group.split("+")) for group in groups(*ports, version="2.23.4")] == [2, 2, 2]
    assert [len(group.split("+")) for group in groups(*ports)] == [4, 2]


def test_link_layers_are_not_mixed() -> None:
    ethernet = roce("mlx5_1", pci="0000:1c:00.1")
    for version in ("2.21.5", V):
        assert groups(A0, ethernet, version=version) == ["mlx5_0:1", "mlx5_1:1"]


def test_virtual_functions_of_a_card_are_one_unless_told_otherwise() -> None:
    functions = [port(f"mlx5_{number}", pci=f"0000:1c:0{number}.2") for number in range(2)]
    assert groups(*functions) == ["mlx5_0:1+mlx5_1:1"]
    assert groups(*functions, IB_MERGE_VFS="0") == ["mlx5_0:1", "mlx5_1:1"]


def test_the_level_decides_from_2_24() -> None:
    near = bus(
        device("0000:1c:00.0", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0"),
        device("0000:5c:00.0", "0000:15:01.0", "0000:16:00.0", "0000:17:02.0"),
    )
    assert groups(A0, B0, pci=near, NET_MERGE_LEVEL="PIX") == ["mlx5_0:1+mlx5_2:1"]
    assert groups(A0, B0, pci=near, NET_MERGE_LEVEL="PIX", version="2.23.4") == ["mlx5_0:1", "mlx5_2:1"]
    assert groups(A0, B0, pci=near) == ["mlx5_0:1", "mlx5_2:1"]
    assert groups(A0, A1, pci=near, NET_MERGE_LEVEL="LOC") == ["mlx5_0:1", "mlx5_1:1"]


def test_what_is_not_modelled_or_not_read_is_said() -> None:
    assert "NCCL_NET_FORCE_MERGE" in groups(A0, B0, NET_FORCE_MERGE="mlx5_0,mlx5_2")
    assert "no level" in groups(A0, B0, NET_MERGE_LEVEL="pix")
    assert "PCI bus" in groups(A0, B0, NET_MERGE_LEVEL="SYS")
    assert "mlx5_3:1" in groups(A0, port("mlx5_3", pci=UNREAD))
    assert groups(port("mlx5_3", pci=UNREAD)) == ["mlx5_3:1"]


def test_a_pair_of_cards_is_two_devices() -> None:
    assert groups(A0, A1, B0, B1) == ["mlx5_0:1+mlx5_1:1", "mlx5_2:1+mlx5_3:1"]
