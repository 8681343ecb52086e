"""Network, HCAs with their GID, network devices, distances and GPUDirect of a node together."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclChoice, NodeFacts
from ncclcheck.model.hardware import HcaChoice, Kernel, RdmaPort
from ncclcheck.nccl.transport import Transport, choose_transport, hca_words
from tests.nccl.hardware import UNREAD, bus, device, gpu, port, rdma, roce

NCCL = NcclChoice(UNREAD, (), True, plugins=())
NODE = NodeFacts(nccl=NCCL, kernel=Kernel((), nvidia_open=True))


def choose(
    *ports: RdmaPort, facts: NodeFacts = NODE, version: str = "2.28.9", **environment: str
) -> Transport:
    named = {f"NCCL_{name}": value for name, value in environment.items()}
    return choose_transport(replace(facts, rdma=rdma(*ports)), ("eth0",), named, version)


def test_the_ports_come_with_their_gid() -> None:
    found = choose(port("mlx5_0"), roce("mlx5_1"))
    assert found.network == "IB"
    assert found.hcas == (HcaChoice("mlx5_0", 1, 0), HcaChoice("mlx5_1", 1, 3))
    assert choose(roce("mlx5_1"), version="2.20.5").hcas == (HcaChoice("mlx5_1", 1, 0),)


def test_a_gid_that_is_not_known_says_why() -> None:
    found = choose(roce("mlx5_0", gids=UNREAD), roce("mlx5_1", gids=UNREAD))
    assert [hca.gid_index for hca in found.hcas] == [None, None]
    assert "the GID of mlx5_0:1, mlx5_1:1 is not known: its GID table was not read" in found.network_reason


def test_the_number_of_network_devices_is_told() -> None:
    one_card = port("mlx5_0", pci="0000:1c:00.0"), port("mlx5_1", pci="0000:1c:00.1")
    assert "; one network device, together mlx5_0:1+mlx5_1:1" in choose(*one_card).network_reason
    assert "; 2 network devices" in choose(*one_card, IB_MERGE_NICS="0").network_reason
    assert "network device" not in choose(port()).network_reason
    assert "is not known (NCCL_NET_FORCE_MERGE" in choose(*one_card, NET_FORCE_MERGE="a,b").network_reason


def test_distances_and_gpudirect() -> None:
    pci = bus(gpu("0000:1b:00.0", numa_node=0), device("0000:10:00.0"))
    found = choose(port("mlx5_0"), facts=replace(NODE, pci=pci))
    assert [(nic.gpu, nic.nic, nic.distance) for nic in found.gpu_nic] == [("0000:1b:00.0", "mlx5_0", "PHB")]
    assert found.gpudirect.startswith("possible through DMA-BUF")
    assert "no NIC within PXB of 0000:1b:00.0" in found.gpudirect


DEFAULT_FILE = "/var/run/nvidia-topologyd/virtualTopology.xml"


@pytest.mark.parametrize(
    ("pci_file", "environment", "file"),
    [
        ("", {"TOPO_FILE": "/opt/microsoft/ndv5-topo.xml"}, "/opt/microsoft/ndv5-topo.xml"),
        (DEFAULT_FILE, {}, DEFAULT_FILE),
        (DEFAULT_FILE, {"TOPO_FILE": "/a.xml"}, "/a.xml"),
    ],
)
def test_where_a_topology_file_decides_distances_they_are_not_those_of_the_bus(
    pci_file: str, environment: dict[str, str], file: str
) -> None:
    pci = replace(bus(gpu("0000:1b:00.0", numa_node=0), device("0000:10:00.0")), topology_file=pci_file)
    found = choose(port("mlx5_0"), port("mlx5_1"), facts=replace(NODE, pci=pci), **environment)
    assert found.gpu_nic == ()
    assert found.gpudirect.startswith("possible through DMA-BUF")
    assert f"is not known: NCCL takes it from {file}" in found.gpudirect
    assert f"is not known (NCCL takes the PCI bus from {file}" in found.network_reason


def test_an_empty_name_of_a_topology_file_is_none_and_keeps_nccl_from_the_default() -> None:
    pci = replace(bus(gpu("0000:1b:00.0"), device("0000:10:00.0")), topology_file=DEFAULT_FILE)
    assert choose(port("mlx5_0"), facts=replace(NODE, pci=pci), TOPO_FILE="").gpu_nic != ()


def test_a_card_that_may_reach_gpus_by_data_direct_is_not_told_to_be_far() -> None:
    function = device("0006:03:00.0", device="0x2100")
    pci = bus(gpu("0000:1b:00.0", numa_node=0), device("0000:10:00.0"), device("0000:11:00.0"), function)
    facts, card = replace(NODE, pci=pci), port("mlx5_0", hca_type="MT4131")
    found = choose(card, facts=facts)
    assert found.gpu_nic == ()
    assert "is not known: NCCL can reach them by data-direct functions" in found.gpudirect
    assert choose(card, facts=facts, version="2.26.6").gpu_nic[0].distance == "PHB"
    beside = choose(card, port("mlx5_1"), facts=facts)
    assert [nic.nic for nic in beside.gpu_nic] == ["mlx5_1"]


def test_sockets_have_no_gpudirect_and_no_hcas() -> None:
    found = choose(port(), IB_DISABLE="1")
    assert (found.network, found.hcas) == ("Socket", ())
    assert found.gpudirect.startswith("not possible: NET/Socket")


def test_a_failure_is_no_network_with_a_reason() -> None:
    found = choose(port(), NET="OFI")
    assert (found.network, found.fails, found.gpudirect) == (None, True, "")
    assert "NCCL_NET=OFI" in found.network_reason


def test_a_node_of_which_nothing_was_read() -> None:
    nothing: dict[str, Any] = {}
    found = choose_transport(NodeFacts(), Missing("absent", "no addresses"), nothing, "2.28.9")
    assert (found.network, found.fails, found.gpu_nic) == (None, False, ())


def test_ports_in_words() -> None:
    hcas = [HcaChoice("a", 1, 3), HcaChoice("b", 1, 3), HcaChoice("c", 2, None)]
    assert hca_words(hcas) == "a:1, b:1 (GID 3), c:2 (GID not known)"
