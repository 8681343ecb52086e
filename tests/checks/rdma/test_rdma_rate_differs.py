"""NC303 rdma-rate-differs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import healthy_rdma, ib_ports, rdma_cluster, roce_cluster, with_port, with_ports
from tests.nccl.hardware import UNREAD, port, roce

SLUG = "rdma-rate-differs"
SLOW: dict[str, Any] = {"rate_gbps": 100.0, "speed": "EDR"}


def slow_node(snapshot: Snapshot, host: str) -> Snapshot:
    return with_ports(snapshot, host, *(replace(ib_port, **SLOW) for ib_port in ib_ports()))


def test_a_port_slower_than_its_siblings_is_named_with_its_lanes() -> None:
    found = finding(SLUG, with_port(rdma_cluster(1), "node01", "mlx5_3", rate_gbps=100.0, width="1X"))
    assert (found.severity, found.hosts) == ("warning", ("node01",))
    assert "mlx5_3:1 on node01 runs at 100 Gbit/s (1X NDR)" in found.summary
    assert "run at 400 Gbit/s" in found.summary
    assert found.evidence[0].source == "/sys/class/infiniband/mlx5_3/ports/1/rate"


def test_it_is_told_once_even_where_other_nodes_have_it_faster() -> None:
    assert finding(SLUG, with_port(rdma_cluster(4), "node02", "mlx5_3", **SLOW)).hosts == ("node02",)


def test_a_node_whose_ports_are_all_slow_differs_from_the_others() -> None:
    found = finding(SLUG, slow_node(rdma_cluster(4), "node04"))
    assert found.hosts == ("node04",)
    assert "100 Gbit/s on node04, 400 Gbit/s on node01, node02 and node03" in found.summary


def test_two_nodes_are_a_tie() -> None:
    found = finding(SLUG, slow_node(rdma_cluster(2), "node02"))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_of_two_siblings_the_slower_one_is_named_without_a_majority() -> None:
    one, two = ib_ports()[:2]
    found = finding(SLUG, everywhere(rdma_cluster(1), rdma=healthy_rdma(one, replace(two, **SLOW))))
    assert "mlx5_1:1 on node01" in found.summary
    assert "no majority" in found.summary


def test_another_card_model_or_link_layer_may_be_slower() -> None:
    storage = port("mlx5_8", board_id="MT_0000000224", **SLOW)
    management = roce("mlx5_9", **SLOW)
    assert is_silent(SLUG, everywhere(rdma_cluster(3), rdma=healthy_rdma(*ib_ports(), storage, management)))


def test_nodes_whose_devices_have_other_names_are_compared_by_their_usual_rate() -> None:
    snapshot = rdma_cluster(2)
    other = [
        replace(ib_port, device=f"ibp{number}_{number}", **SLOW) for number, ib_port in enumerate(ib_ports())
    ]
    found = finding(SLUG, with_ports(snapshot, "node02", *other))
    assert "most RDMA ports" in found.summary


def test_a_rate_that_was_not_read_is_unknown() -> None:
    result = run(SLUG, with_port(roce_cluster(2), "node02", "mlx5_3", rate_gbps=UNREAD))
    assert result.outcome == "unknown"
    assert "mlx5_3:1" in result.reason
    assert run(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_3", state=UNREAD)).outcome == "unknown"


def test_ports_that_are_down_have_no_rate_to_compare() -> None:
    assert is_silent(SLUG, with_port(rdma_cluster(2), "node02", "mlx5_3", state="DOWN", rate_gbps=10.0))
