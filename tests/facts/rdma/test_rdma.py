"""RDMA ports as /sys has them: InfiniBand, RoCE, EFA, virtual functions; what is damaged or absent is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.facts.rdma.rdma import PEER_MEMORY_PATHS, read_rdma, unusable_files
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Gid, Rdma, RdmaPort
from tests.facts.trees import HCA, IPV4, LINK_LOCAL, NO_GID, Tree, roce_machine, switch


def known(root: Path) -> Rdma:
    rdma = read_rdma(root)
    assert not isinstance(rdma, Missing)
    return rdma


def only(rdma: Rdma) -> RdmaPort:
    (port,) = rdma.ports
    return port


def test_a_roce_port_with_its_gids(tmp_path: Path) -> None:
    rdma = known(roce_machine(tmp_path).root)
    port = only(rdma)
    assert (port.device, port.port, port.link_layer) == ("mlx5_0", 1, "Ethernet")
    assert (port.state, port.phys_state, port.lid) == ("ACTIVE", "LinkUp", 0)
    assert (port.rate_gbps, port.width, port.speed) == (400.0, "4X", "NDR")
    assert (port.pci, port.numa_node, port.driver, port.uverbs) == (HCA, 0, "mlx5_core", "uverbs0")
    assert (port.hca_type, port.firmware, port.board_id) == ("MT4129", "28.39.1002", "MT_0000000838")
    assert isinstance(port.active_mtu, Missing)
    assert port.gids == (
        Gid(0, LINK_LOCAL, "IB/RoCE v1", "ens24np0"),
        Gid(1, LINK_LOCAL, "RoCE v2", "ens24np0"),
        Gid(2, IPV4, "IB/RoCE v1", "ens24np0"),
        Gid(3, IPV4, "RoCE v2", "ens24np0"),
    )
    assert port.gid_table_length == 5
    assert rdma.device_files == ("uverbs0",)
    assert rdma.peer_memory == ("/sys/module/nvidia_peermem/version",)
    assert decode(encode(rdma), Rdma) == rdma


def test_an_infiniband_port_that_is_down(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    card = tree.pci("pci0000:15", HCA, "0x020700")
    tree.port(
        tree.rdma(card, "mlx5_0", "uverbs0"), 1, "InfiniBand",
        state="1: DOWN", phys_state="2: Polling", rate="2.5 Gb/sec (1X SDR)", lid="0xffff",
    )  # fmt: skip
    port = only(known(tmp_path))
    assert (port.link_layer, port.state, port.phys_state, port.lid) == (
        "InfiniBand",
        "DOWN",
        "Polling",
        65535,
    )
    assert (port.rate_gbps, port.width, port.speed) == (2.5, "1X", "SDR")


def test_an_efa_port_has_neither_link_layer_nor_lid(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    card = tree.pci("pci0000:15", "0000:4f:00.0", "0x020000", vendor="0x1d0f")
    ports = tree.rdma(card, "rdmap79s0", "uverbs0")
    tree.files(f"{ports}/1", {"link_layer": "Unknown", "state": "4: ACTIVE", "rate": "100 Gb/sec (4X EDR)"})
    tree.gid(f"{ports}/1", 0, LINK_LOCAL)
    port = only(known(tmp_path))
    assert port.link_layer == "Unknown"
    assert isinstance(port.lid, Missing)
    assert isinstance(port.phys_state, Missing)
    assert isinstance(port.gids, tuple)
    assert [(gid.index, gid.gid) for gid in port.gids] == [(0, LINK_LOCAL)]
    assert isinstance(port.gids[0].type, Missing)
    assert isinstance(port.gids[0].netdev, Missing)


def test_devices_are_in_the_order_of_their_uverbs_files(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number, (name, uverbs) in enumerate(
        [
            ("mlx5_0", "uverbs10"),
            ("mlx5_bond_0", "uverbs2"),
            ("mlx5_9", None),
            ("mlx5_10", None),
            ("rxe0", "uverbs0"),
        ]
    ):
        card = tree.pci("pci0000:15", f"0000:{number:02x}:00.0", "0x020700")
        ports = tree.rdma(card, name, uverbs)
        tree.port(ports, 2, "Ethernet")
        tree.port(ports, 1, "Ethernet")
    assert [(port.device, port.port) for port in known(tmp_path).ports] == [
        (name, port) for name in ("rxe0", "mlx5_bond_0", "mlx5_0", "mlx5_9", "mlx5_10") for port in (1, 2)
    ]


def test_a_software_device_is_on_no_card(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    folder = "sys/devices/virtual/infiniband/rxe0"
    tree.files(folder, {"node_guid": "5054:00ff:fe12:3456"})
    tree.link("sys/class/infiniband/rxe0", folder)
    tree.port(f"{folder}/ports", 1, "Ethernet")
    port = only(known(tmp_path))
    assert isinstance(port.pci, Missing)
    assert isinstance(port.numa_node, Missing)
    assert isinstance(port.uverbs, Missing)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("state", "ACTIVE"),
        ("state", "4:"),
        ("rate", "Invalid argument"),
        ("rate", "fast (4X NDR)"),
        ("lid", "Invalid argument"),
        ("lid", "0xfffffffffffffffffffffff"),
        ("link_layer", ""),
        ("link_layer", "nonsense"),
    ],
)
def test_a_damaged_value_is_missing_and_takes_no_other_with_it(tmp_path: Path, name: str, text: str) -> None:
    tree = roce_machine(tmp_path)
    healthy = only(known(tree.root))
    port = f"sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/{HCA}/infiniband/mlx5_0/ports/1"
    tree.files(port, {name: text})
    told = only(known(tree.root))
    fields = ("rate_gbps", "width", "speed") if name == "rate" else (name,)
    assert all(isinstance(getattr(told, field), Missing) for field in fields)
    assert replace(told, **{field: getattr(healthy, field) for field in fields}) == healthy


def test_entries_that_are_damaged_or_unset_are_no_gids(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    card = tree.pci("pci0000:15", HCA, "0x020700")
    port = tree.port(tree.rdma(card, "mlx5_0", "uverbs0"), 1, "Ethernet")
    bare = "fe80:0000:0000:0000:0000:0000:0000:0000"
    for index, gid in enumerate([NO_GID, bare, "Invalid argument", "", IPV4, f"{IPV4}:0000"]):
        tree.gid(port, index, gid, "RoCE v2", "eth0")
    tree.files(f"{port}/gids", {"not_a_number": IPV4})
    told = only(known(tmp_path))
    assert told.gids == (Gid(4, IPV4, "RoCE v2", "eth0"),)
    assert told.gid_table_length == 6


def test_a_port_without_a_table_says_that_it_was_not_read(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.port("sys/class/infiniband/mlx5_0/ports", 1, "InfiniBand")
    port = only(known(tmp_path))
    assert port.gids == ()
    assert isinstance(port.gid_table_length, Missing)
    assert isinstance(port.pci, Missing)


def test_folders_that_are_no_ports_are_left_out(tmp_path: Path) -> None:
    tree = roce_machine(tmp_path)
    ports = f"sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/{HCA}/infiniband/mlx5_0/ports"
    tree.files(ports, {"2": "no folder", "x/state": "4: ACTIVE", "4096/state": "4: ACTIVE"})
    assert only(known(tree.root)).port == 1


def test_a_device_whose_ports_cannot_be_seen_is_said_to_be_there(tmp_path: Path) -> None:
    tree = roce_machine(tmp_path)
    assert known(tree.root).unread == {}
    tree.link("sys/class/infiniband/gone", "sys/devices/gone")
    empty = tree.rdma(f"pci0000:15/{HCA}", "mlx5_7", None)
    (tree.root / empty).mkdir(parents=True)
    rdma = known(tree.root)
    assert only(rdma).device == "mlx5_0"
    assert set(rdma.unread) == {"gone", "mlx5_7"}


def test_a_tree_without_classes_tells_nothing_of_devices(tmp_path: Path) -> None:
    rdma = read_rdma(tmp_path)
    assert isinstance(rdma, Missing)
    assert (rdma.missing, rdma.detail) == ("absent", "/sys/class: No such file or directory")


def test_what_a_tree_does_not_tell_is_missing(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    rdma = known(tmp_path)
    assert rdma.ports == ()
    for fact in (rdma.device_files, rdma.peer_memory, rdma.unusable_files, rdma.verbs_library):
        assert isinstance(fact, Missing)
        assert fact.missing == "absent"


def test_device_files_need_a_dev_and_peer_memory_a_module_folder(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for folder in ("class", "module"):
        (tmp_path / "sys" / folder).mkdir(parents=True)
    rdma = known(tmp_path)
    assert (rdma.device_files, rdma.peer_memory) == ((), ())


@pytest.mark.parametrize("path", PEER_MEMORY_PATHS)
def test_each_peer_memory_path_counts_by_being_there(tmp_path: Path, path: str) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    place = tmp_path / path.lstrip("/")
    place.parent.mkdir(parents=True)
    place.touch()
    assert known(tmp_path).peer_memory == (path,)


def test_unusable_files_are_asked_of_this_machine_only() -> None:
    rdma = Rdma((), ("uverbs-that-is-not-here",), ())
    assert unusable_files(rdma) == ("uverbs-that-is-not-here",)
    assert unusable_files(Rdma((), (), ())) == ()
    gone = Missing("absent", "/dev")
    assert unusable_files(Rdma((), gone, ())) == gone


def test_this_machine_can_be_asked() -> None:
    rdma = known(Path("/"))
    assert not isinstance(rdma.peer_memory, Missing)
    own = {path.name for path in Path("/sys/class/infiniband").glob("*")}
    assert {port.device for port in rdma.ports} <= own


def test_the_switch_above_the_card_is_no_device_of_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    hca_port, _ = switch(tree)
    card = tree.pci(hca_port, HCA, "0x020700", numa_node="-1")
    tree.port(tree.rdma(card, "mlx5_0", None), 1, "InfiniBand")
    port = only(known(tmp_path))
    assert port.pci == HCA
    assert isinstance(port.numa_node, Missing)


def test_a_class_folder_that_leads_out_of_the_tree_is_not_the_same_as_none(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "root/sys/class").mkdir(parents=True)
    (tmp_path / "root/sys/class/infiniband").symlink_to("../../../outside")
    rdma = read_rdma(tmp_path / "root")
    assert isinstance(rdma, Missing)
    assert rdma.missing == "denied"
