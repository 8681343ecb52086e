"""NCCL_IB_HCA, and which ports NET/IB uses in which order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.nccl.rdma import hca
from tests.fact_builders import some
from tests.nccl.hardware import UNREAD, port, roce

OLD, NEW = "2.28.9", "2.30.7"
NAMES = ("mlx5_0", "mlx5_1", "mlx5_10", "irdma0")


def kept(value: str | None, version: str = OLD) -> list[str]:
    pattern = hca.parse(value, version)
    return [f"{name}:{number}" for name in NAMES for number in (1, 2) if pattern.matches(name, number)]


def used(*ports: RdmaPort, version: str = OLD, **environment: str) -> list[str]:
    named = {f"NCCL_IB_{name}": value for name, value in environment.items()}
    return [hca.name_of(rdma_port) for rdma_port in some(hca.selected_ports(ports, named, version))]


ALL = [f"{name}:{number}" for name in NAMES for number in (1, 2)]


@pytest.mark.parametrize("version", ["2.18.1", OLD, NEW])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ALL),
        ("", ALL),
        (",,", ALL),
        ("=", ALL),
        (":1", ALL),
        ("^", []),
        ("^,", []),
        ("mlx5_1", ["mlx5_1:1", "mlx5_1:2", "mlx5_10:1", "mlx5_10:2"]),
        ("=mlx5_1", ["mlx5_1:1", "mlx5_1:2"]),
        ("=mlx5_1:2", ["mlx5_1:2"]),
        ("^=mlx5_1,mlx5_10,irdma0", ["mlx5_0:1", "mlx5_0:2"]),
        ("^mlx5", ["irdma0:1", "irdma0:2"]),
        ("=^mlx5_0", []),
        ("mlx5_0, mlx5_1", ["mlx5_0:1", "mlx5_0:2"]),
        ("mlx5_0:-1", ["mlx5_0:1", "mlx5_0:2"]),
        ("mlx5_0:01", ["mlx5_0:1"]),
        ("mlx5_0:2x", ["mlx5_0:2"]),
        ("mlx5_0:x", []),
        ("m", [one for one in ALL if one[0] == "m"]),
        ("nosuch", []),
    ],
)
def test_the_grammar(version: str, value: str | None, expected: list[str]) -> None:
    assert kept(value, version) == expected


def test_a_colon_without_a_number_is_port_0_before_2_30_7_and_any_port_since() -> None:
    assert kept("mlx5_0:", "2.30.4") == []
    assert kept("mlx5_0:", NEW) == ["mlx5_0:1", "mlx5_0:2"]


def test_rail_and_plane_only_label_a_port() -> None:
    assert kept("mlx5_0:1:2:3", NEW) == kept("mlx5_0:1:2:3", "2.30.4") == ["mlx5_0:1"]
    assert hca.parse("mlx5_0::2:3", NEW).entries == (hca.HcaEntry("mlx5_0", -1, 2, 3),)


@pytest.mark.parametrize(("version", "most"), [("2.18.3", 16), ("2.18.5", 32), (NEW, 32)])
def test_the_list_and_the_ports_are_limited(version: str, most: int) -> None:
    assert len(hca.parse(",".join(f"x{number}" for number in range(40)), version).entries) == most
    assert len(used(*(port(f"mlx5_{number}") for number in range(40)), version=version)) == most


@pytest.mark.parametrize("state", ["DOWN", "INIT", "ARMED"])
def test_only_active_ports_count(state: str) -> None:
    assert used(port(state=state), roce("mlx5_1")) == ["mlx5_1:1"]


def test_only_infiniband_and_ethernet_count() -> None:
    assert used(port(link_layer="Unknown"), port("mlx5_1")) == ["mlx5_1:1"]


def test_a_port_of_unread_state_is_not_guessed_unless_something_else_rules_it_out() -> None:
    unread = port(state=UNREAD)
    assert isinstance(hca.selected_ports([unread], {}, OLD), Missing)
    assert used(replace(unread, link_layer="Unknown")) == []
    assert used(unread, port("mlx5_1"), HCA="mlx5_1") == ["mlx5_1:1"]
    assert isinstance(hca.selected_ports([port(link_layer=UNREAD)], {}, OLD), Missing)
    assert used(port(link_layer=UNREAD, state="DOWN")) == []


def test_the_order_is_the_kernels_and_from_2_29_7_that_of_pci_addresses() -> None:
    far, near = port("mlx5_0", pci="0001:05:00.0"), port("mlx5_1", pci="0000:f0:00.0")
    without = port("mlx5_2", pci=UNREAD)
    ports = (without, far, near)
    assert used(*ports, version="2.29.3") == ["mlx5_2:1", "mlx5_0:1", "mlx5_1:1"]
    assert used(*ports, version="2.29.7") == ["mlx5_1:1", "mlx5_0:1", "mlx5_2:1"]
    assert used(*ports, version="2.29.7", DEVICE_PCI_ORDER="0") == ["mlx5_2:1", "mlx5_0:1", "mlx5_1:1"]
    assert used(*ports, version="2.32.3", DEVICE_PCI_ORDER="true") == ["mlx5_1:1", "mlx5_0:1", "mlx5_2:1"]
    assert used(*ports, version="2.29.7", DEVICE_PCI_ORDER="true") == ["mlx5_2:1", "mlx5_0:1", "mlx5_1:1"]


def test_the_limit_comes_before_the_sorting() -> None:
    ports = [port(f"mlx5_{number}", pci=f"0000:{0xF0 - number:02x}:00.0") for number in range(33)]
    assert "mlx5_32:1" not in used(*ports, version=NEW)
