"""What would change the choice: every sentence comes from running the model with that change."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.facts import Interface, NcclChoice, NcclConfigFile
from ncclcheck.nccl.explanation import explain
from tests.fact_builders import interface, loopback, node_facts, some
from tests.nccl.hardware import NO_LIBRARY, UNREAD, port, rdma, roce

V = "2.28.9"
TWO = (loopback(), interface("eth0", "10.0.0.1/24"), interface("eth1", "10.0.1.1/24", index=3))


def changes(version: str = V, files: tuple[NcclConfigFile, ...] = (), **sections: Any) -> tuple[str, ...]:
    own: dict[str, Any] = {"environment": {}, "interfaces": TWO, "rdma": rdma(), **sections}
    facts = replace(node_facts(0, 4), nccl=NcclChoice(UNREAD, files, True, plugins=()), **own)
    return some(explain(facts, version)).changes


def test_another_interface_can_be_named() -> None:
    assert "NCCL_SOCKET_IFNAME=eth1 would take eth1 10.0.1.1" in changes()


def test_a_prefix_that_would_match_another_one_is_written_exactly() -> None:
    similar = (*TWO, interface("eth10", "10.0.2.1/24", index=1))
    ordered = tuple(sorted(similar, key=lambda one: one.index))
    found = changes(interfaces=ordered)
    assert any(text.startswith("NCCL_SOCKET_IFNAME==eth1 would take eth1 ") for text in found)


def test_unsetting_what_decides() -> None:
    assert "unsetting NCCL_SOCKET_IFNAME would take eth0 10.0.0.1" in changes(
        environment={"NCCL_SOCKET_IFNAME": "eth1"}
    )
    off = changes(environment={"NCCL_IB_DISABLE": "1"}, rdma=rdma(roce()))
    assert "unsetting NCCL_IB_DISABLE would use IB with mlx5_0:1 (GID 3)" in off
    fatal = changes(environment={"NCCL_NET": "OFI"})
    assert "unsetting NCCL_NET would use Socket" in fatal


def test_a_setting_of_a_file_is_removed_from_that_file() -> None:
    files = (NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "eth1"}),)
    assert "removing NCCL_SOCKET_IFNAME from /etc/nccl.conf would take eth0 10.0.0.1" in changes(files=files)


def test_what_comes_to_light_when_a_setting_is_removed_is_told() -> None:
    home = NcclConfigFile("/root/.nccl.conf", {"NCCL_SOCKET_IFNAME": "=eth0"})
    system = NcclConfigFile("/etc/nccl.conf", {"NCCL_SOCKET_IFNAME": "=lo"})
    three = (*TWO, interface("ib0", "10.0.9.1/24", index=4))
    own = {"NCCL_SOCKET_IFNAME": "=eth1"}
    found = changes(environment=own, files=(home, system), interfaces=three)
    assert [text for text in found if text.startswith("unsetting")] == [
        "unsetting NCCL_SOCKET_IFNAME would take eth0 10.0.0.1",
        "unsetting NCCL_SOCKET_IFNAME and removing it from /root/.nccl.conf would take lo 127.0.0.1",
        "unsetting NCCL_SOCKET_IFNAME and removing it from /root/.nccl.conf and removing it from /etc/nccl.conf "
        "would take ib0 10.0.9.1",
    ]


def test_what_changes_nothing_is_not_told() -> None:
    found = changes(environment={"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx5_0", "NCCL_DEBUG": "INFO"})
    assert not any(text.startswith("unsetting") for text in found)


def test_another_version_with_other_rules() -> None:
    down = interface("eth0", "10.0.0.1/24", running=False)
    interfaces: tuple[Interface, ...] = (loopback(), down, TWO[2])
    assert "NCCL 2.27.7 would take eth0 10.0.0.1" in changes(interfaces=interfaces)
    assert "NCCL 2.28.9 would take eth1 10.0.1.1" in changes("2.27.7", interfaces=interfaces)
    roce_only = changes(rdma=rdma(roce()))
    assert "NCCL 2.20.5 would use IB with mlx5_0:1 (GID 0)" in roce_only


def test_what_is_broken_and_would_be_used_when_mended() -> None:
    without = changes(rdma=rdma(port(), verbs_library=NO_LIBRARY))
    assert "libibverbs on the loader's path would use IB with mlx5_0:1 (GID 0)" in without
    closed = changes(rdma=rdma(port(), device_files=()))
    assert "access to the device files in /dev/infiniband would use IB with mlx5_0:1 (GID 0)" in closed
    down = (loopback(), interface("eth0", "10.0.0.1/24", running=False), TWO[2])
    assert "a working link on eth0 would take eth0 10.0.0.1" in changes(interfaces=down)


def test_infiniband_can_be_switched_off() -> None:
    assert "NCCL_IB_DISABLE=1 would use Socket" in changes(rdma=rdma(port()))


def test_a_change_that_breaks_says_so() -> None:
    fallback = changes(environment={"NCCL_NET": "IB"}, rdma=rdma(port()))
    assert any(text.startswith("NCCL_IB_DISABLE=1 would fail: NCCL stops with an error") for text in fallback)


def test_where_nothing_else_is_possible_nothing_is_told() -> None:
    assert changes(rdma=rdma(), interfaces=TWO[:2]) == ()
