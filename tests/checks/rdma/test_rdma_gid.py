"""NC304 rdma-gid."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface
from ncclcheck.model.snapshot import Snapshot
from tests.builders import with_environment, with_facts, with_interfaces
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import answer, interface, nccl_choice
from tests.hardware_builders import rdma_cluster, roce_cluster, with_port
from tests.nccl.hardware import LINK_LOCAL, ROCE_GIDS, UNREAD, gid

SLUG = "rdma-gid"
FOREIGN = Missing("error", "Invalid argument")


def set_everywhere(snapshot: Snapshot, **variables: str) -> Snapshot:
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, **variables)
    return snapshot


def rails(node_rank: int, third: int = 1) -> list[Interface]:
    """The network interfaces behind the rails, with the prefix that tells the subnet."""
    return [
        interface(f"rail{rail}", f"10.{third}.{rail}.{node_rank + 1}/24", index=10 + rail)
        for rail in range(8)
    ]


def told(nnodes: int) -> Snapshot:
    """A RoCE cluster whose subnets are known."""
    snapshot = roce_cluster(nnodes)
    for node in snapshot.nodes:
        own = interface("eth0", f"10.0.0.{node.node_rank + 1}/24")
        snapshot = with_interfaces(snapshot, node.host, own, *rails(node.node_rank))
    return snapshot


def test_the_usual_tables_are_silent() -> None:
    assert is_silent(SLUG, told(4))
    assert is_silent(SLUG, roce_cluster(1))


def test_another_index_for_the_same_kind_of_address_is_fine() -> None:
    moved = (*ROCE_GIDS[:2], gid(4, "10.1.2.3", "v1"), gid(5, "10.1.2.3"))
    assert is_silent(SLUG, with_port(told(3), "node03", "mlx5_2", gids=moved))


def test_a_forced_index_that_is_unset_on_some_port_is_an_error() -> None:
    short = (gid(0, LINK_LOCAL, "v1"), gid(1, LINK_LOCAL))
    snapshot = with_port(set_everywhere(told(3), NCCL_IB_GID_INDEX="3"), "node02", "mlx5_4", gids=short)
    found = finding(SLUG, snapshot)
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "mlx5_4:1 on node02" in found.summary
    assert "GID 3 (set by NCCL_IB_GID_INDEX), which is unset" in found.summary
    assert found.evidence[0].source == "/sys/class/infiniband/mlx5_4/ports/1/gids/3"


def test_a_forced_index_is_not_asked_of_native_infiniband() -> None:
    assert is_silent(SLUG, set_everywhere(rdma_cluster(2), NCCL_IB_GID_INDEX="3"))


def test_a_port_without_any_gid_is_an_error() -> None:
    found = finding(SLUG, with_port(told(2), "node01", "mlx5_0", gids=()))
    assert (found.severity, found.hosts) == ("error", ("node01",))


def test_a_port_without_an_address_is_link_local_and_a_warning() -> None:
    short = (gid(0, LINK_LOCAL, "v1"), gid(1, LINK_LOCAL))
    snapshot = told(2)
    for node in snapshot.nodes:
        snapshot = with_port(snapshot, node.host, "mlx5_6", gids=short)
    found = finding(SLUG, snapshot)
    assert (found.severity, found.hosts) == ("warning", ("node01", "node02"))
    assert "IP address" in found.fixes[0].text


def test_old_versions_take_index_0_and_are_told_the_right_one() -> None:
    snapshot = roce_cluster(1)
    snapshot = with_facts(snapshot, "node01", nccl=nccl_choice(answer("10.0.0.1", "eth0", "2.19.3")))
    found = finding(SLUG, snapshot)
    assert found.severity == "warning"
    assert found.fixes[0].env == {"NCCL_IB_GID_INDEX": "3"}


def test_ipv6_only_ports_are_told_the_family() -> None:
    only6 = (gid(0, LINK_LOCAL, "v1"), gid(1, LINK_LOCAL), gid(3, "fd00:0000:0000:0000:0000:0000:0000:0001"))
    found = finding(SLUG, with_port(roce_cluster(1), "node01", "mlx5_0", gids=only6))
    assert found.fixes[0].env == {"NCCL_IB_ADDR_FAMILY": "AF_INET6"}


def test_a_gid_of_another_network_namespace_is_an_error() -> None:
    foreign = tuple(replace(roce_gid, type=FOREIGN, netdev=FOREIGN) for roce_gid in ROCE_GIDS)
    found = finding(SLUG, with_port(told(1), "node01", "mlx5_1", gids=foreign))
    assert found.severity == "error"
    assert "another network namespace" in found.summary


def test_roce_v1_on_one_node_and_v2_on_the_others_is_an_error_on_that_node() -> None:
    only1 = (gid(0, "10.1.3.2", "v1"),)
    found = finding(SLUG, with_port(told(3), "node02", "mlx5_3", gids=only1))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "RoCE v1, IPv4 on node02, RoCE v2, IPv4 on node01 and node03" in found.summary


def test_another_subnet_than_most_is_a_warning_that_names_the_host() -> None:
    other = (*ROCE_GIDS[:2], gid(2, "10.9.3.2", "v1"), gid(3, "10.9.3.2"))
    snapshot = with_port(told(3), "node02", "mlx5_3", gids=other)
    interfaces = [*rails(1), interface("vlan9", "10.9.3.2/24", index=30)]
    found = finding(SLUG, with_interfaces(snapshot, "node02", interface("eth0", "10.0.0.2/24"), *interfaces))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "10.9.3.0/24 on node02, 10.1.3.0/24 on node01 and node03" in found.summary


def test_a_subnet_of_its_own_for_every_node_is_a_routed_network_by_design() -> None:
    snapshot = told(3)
    for node in snapshot.nodes:
        rank = node.node_rank
        own = interface("eth0", f"10.0.0.{rank + 1}/24")
        snapshot = with_interfaces(snapshot, node.host, own, *rails(rank, third=20 + rank))
        for rail in range(8):
            text = f"10.{20 + rank}.{rail}.{rank + 1}"
            table = (*ROCE_GIDS[:2], gid(2, text, "v1"), gid(3, text))
            snapshot = with_port(snapshot, node.host, f"mlx5_{rail}", gids=table)
    assert is_silent(SLUG, snapshot)


def test_an_infiniband_port_in_another_subnet_is_a_warning() -> None:
    table: tuple[Any, ...] = (gid(0, "fec0:0000:0000:0001:a288:c2ff:fe10:0020", "v1"),)
    found = finding(SLUG, with_port(rdma_cluster(3), "node03", "mlx5_5", gids=table))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "subnet prefix of mlx5_5:1" in found.summary


def test_what_was_not_read_is_unknown() -> None:
    for changes in (
        {"gids": UNREAD},
        {"gids": (), "gid_table_length": UNREAD},
        {"state": UNREAD},
        {"link_layer": UNREAD},
        {"gids": tuple(replace(roce_gid, type=UNREAD) for roce_gid in ROCE_GIDS)},
    ):
        result = run(SLUG, with_port(roce_cluster(2), "node02", "mlx5_3", **changes))
        assert (result.outcome, "mlx5_3:1" in result.reason) == ("unknown", True), changes
