"""NC311 rdma-mtu-differs."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from tests.builders import with_environment
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import rdma_cluster, roce_cluster, with_port

SLUG = "rdma-mtu-differs"


def test_a_port_with_a_smaller_mtu_is_named() -> None:
    found = finding(SLUG, with_port(roce_cluster(4), "node03", "mlx5_2", active_mtu=1024))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "1024 on mlx5_2:1 on node03, where the others have 4096" in found.summary
    assert found.evidence[0].observed == "1024"


def test_a_node_that_is_small_on_all_its_ports_is_named_once() -> None:
    snapshot = roce_cluster(3)
    for rail in range(8):
        snapshot = with_port(snapshot, "node02", f"mlx5_{rail}", active_mtu=2048)
    assert finding(SLUG, snapshot).hosts == ("node02",)


def test_ports_of_one_node_may_differ_too() -> None:
    assert finding(SLUG, with_port(rdma_cluster(1), "node01", "mlx5_7", active_mtu=2048)).hosts == ("node01",)


def test_a_tie_is_said_to_be_one() -> None:
    snapshot = rdma_cluster(2)
    for rail in range(8):
        snapshot = with_port(snapshot, "node02", f"mlx5_{rail}", active_mtu=2048)
    assert "where the others have 4096 (no majority)" in finding(SLUG, snapshot).summary


def test_ports_that_nccl_does_not_use_do_not_count() -> None:
    down = with_port(rdma_cluster(2), "node02", "mlx5_3", active_mtu=256, state="DOWN")
    assert is_silent(SLUG, down)
    snapshot = with_port(rdma_cluster(2), "node02", "mlx5_3", active_mtu=256)
    for host in ("node01", "node02"):
        snapshot = with_environment(snapshot, host, NCCL_IB_HCA="^mlx5_3")
    assert is_silent(SLUG, snapshot)


def test_what_libibverbs_does_not_tell_is_unknown() -> None:
    result = run(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_3", active_mtu=Missing("denied", "no")))
    assert (result.outcome, result.reason) == ("unknown", "node02: active MTU of mlx5_3:1: denied: no")
