"""NC301 rdma-port-down."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere, with_environment
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import healthy_rdma, ib_ports, rdma_cluster, with_port, with_ports
from tests.nccl.hardware import UNREAD, port

SLUG = "rdma-port-down"
NO_CABLE: dict[str, Any] = {"state": "DOWN", "phys_state": "Polling"}


def down_everywhere(snapshot: Snapshot, device: str) -> Snapshot:
    for node in snapshot.nodes:
        snapshot = with_port(snapshot, node.host, device, **NO_CABLE)
    return snapshot


def test_a_port_that_is_active_elsewhere_is_an_error() -> None:
    found = finding(SLUG, with_port(rdma_cluster(4), "node03", "mlx5_2", **NO_CABLE))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "mlx5_2:1 on node03 is DOWN (Polling), and ACTIVE on node01, node02 and node04" in found.summary
    assert found.evidence[0].source == "/sys/class/infiniband/mlx5_2/ports/1/state"
    assert found.fixes[0].commands


def test_of_two_nodes_the_one_whose_port_is_down_is_named() -> None:
    found = finding(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_0", **NO_CABLE))
    assert (found.severity, found.hosts) == ("error", ("node02",))


def test_a_port_of_that_name_on_another_kind_of_card_says_nothing() -> None:
    changes = {**NO_CABLE, "board_id": "MT_0000000224"}
    assert finding(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_5", **changes)).severity == "warning"


def test_a_port_without_a_cable_on_a_lone_node_is_a_warning() -> None:
    found = finding(SLUG, with_port(rdma_cluster(1), "node01", "mlx5_7", **NO_CABLE))
    assert (found.severity, found.hosts) == ("warning", ("node01",))


def test_a_port_without_a_cable_on_every_node_is_only_mentioned() -> None:
    found = finding(SLUG, down_everywhere(rdma_cluster(3), "mlx5_7"))
    assert (found.severity, found.hosts) == ("info", ("node01", "node02", "node03"))


@pytest.mark.parametrize("state", ["INIT", "ARMED"])
def test_a_link_that_no_subnet_manager_brought_up_is_an_error_everywhere(state: str) -> None:
    snapshot = rdma_cluster(2)
    for node in snapshot.nodes:
        snapshot = with_port(snapshot, node.host, "mlx5_1", state=state)
    found = finding(SLUG, snapshot)
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "subnet manager" in found.summary


def test_a_port_that_the_user_names_is_an_error() -> None:
    snapshot = with_port(rdma_cluster(1), "node01", "mlx5_7", **NO_CABLE)
    found = finding(SLUG, with_environment(snapshot, "node01", NCCL_IB_HCA="=mlx5_0,mlx5_7"))
    assert found.severity == "error"
    assert "NCCL_IB_HCA names it" in found.summary


def test_a_port_that_the_user_leaves_out_does_not_matter() -> None:
    snapshot = with_port(rdma_cluster(1), "node01", "mlx5_7", **NO_CABLE)
    assert is_silent(SLUG, with_environment(snapshot, "node01", NCCL_IB_HCA="^mlx5_7"))


def test_many_ports_of_many_hosts_are_one_finding() -> None:
    ports = [port(ib_port.device, pci=ib_port.pci, **NO_CABLE) for ib_port in ib_ports()[:4]]
    snapshot = rdma_cluster(6)
    for host in ("node02", "node05"):
        snapshot = with_ports(snapshot, host, *ports, *ib_ports()[4:])
    found = finding(SLUG, snapshot)
    assert found.hosts == ("node02", "node05")
    assert "mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_3:1 on node02 and node05 are DOWN" in found.summary


def test_a_state_that_was_not_read_is_unknown() -> None:
    result = run(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_3", state=UNREAD))
    assert result.outcome == "unknown"
    assert "mlx5_3:1 on node02" in result.reason


def test_an_efa_port_that_is_down_is_found_too() -> None:
    efa = [port(f"rdmap_{number}", link_layer="Unknown", driver="efa") for number in range(4)]
    snapshot = everywhere(rdma_cluster(3), rdma=healthy_rdma(*efa))
    assert is_silent(SLUG, snapshot)
    assert finding(SLUG, with_port(snapshot, "node02", "rdmap_1", state="DOWN")).hosts == ("node02",)


def test_nodes_without_devices_and_rdma_switched_off_are_not_applicable() -> None:
    empty = everywhere(rdma_cluster(2), rdma=healthy_rdma().__class__((), (), ()))
    assert run(SLUG, empty).outcome == "not_applicable"
    off = rdma_cluster(2)
    for node in off.nodes:
        off = with_environment(
            with_port(off, node.host, "mlx5_0", **NO_CABLE), node.host, NCCL_IB_DISABLE="1"
        )
    assert run(SLUG, off).outcome == "not_applicable"
