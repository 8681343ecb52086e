"""NC308 link-layer-mixed."""

from __future__ import annotations

from tests.builders import everywhere, with_environment, with_facts
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import healthy_rdma, ib_ports, rdma_cluster, roce_ports, with_port, with_ports
from tests.nccl.hardware import UNREAD, roce

SLUG = "link-layer-mixed"
MANAGEMENT = roce("mlx5_8", rate_gbps=100.0)


def test_an_active_ethernet_card_beside_infiniband_is_named_and_the_list_without_it_given() -> None:
    found = finding(SLUG, with_ports(rdma_cluster(3), "node02", *ib_ports(), MANAGEMENT))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "mlx5_8:1 (Ethernet, 100 Gbit/s)" in found.summary
    assert found.fixes[0].env["NCCL_IB_HCA"] == "=" + ",".join(f"mlx5_{rail}" for rail in range(8))
    assert found.evidence[0].source == "/sys/class/infiniband/mlx5_8/ports/1/link_layer"


def test_with_that_list_it_is_silent() -> None:
    snapshot = everywhere(rdma_cluster(2), rdma=healthy_rdma(*ib_ports(), MANAGEMENT))
    wanted = finding(SLUG, snapshot).fixes[0].env["NCCL_IB_HCA"]
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, NCCL_IB_HCA=wanted)
    assert is_silent(SLUG, snapshot)


def test_a_port_that_is_down_is_not_used_and_so_not_mixed() -> None:
    snapshot = everywhere(rdma_cluster(2), rdma=healthy_rdma(*ib_ports(), roce("mlx5_8", state="DOWN")))
    assert is_silent(SLUG, snapshot)


def test_as_many_of_each_are_said_to_be() -> None:
    two = everywhere(rdma_cluster(1), rdma=healthy_rdma(ib_ports()[0], MANAGEMENT))
    assert "as many of each" in finding(SLUG, two).summary


def test_two_ports_of_one_card_are_told_apart_in_the_list() -> None:
    first = ib_ports()[0]
    snapshot = everywhere(rdma_cluster(1), rdma=healthy_rdma(first, roce("mlx5_0", 2)))
    assert finding(SLUG, snapshot).fixes[0].env["NCCL_IB_HCA"] == "=mlx5_0:1"


def test_a_roce_node_among_infiniband_nodes_is_an_error() -> None:
    found = finding(SLUG, with_facts(rdma_cluster(3), "node03", rdma=healthy_rdma(*roce_ports(2))))
    assert (found.severity, found.hosts) == ("error", ("node03",))


def test_what_was_not_read_is_unknown() -> None:
    for what in ("state", "link_layer"):
        assert (
            run(SLUG, with_port(rdma_cluster(2), "node01", "mlx5_0", **{what: UNREAD})).outcome == "unknown"
        )
