"""What the rules stand on: changes on top of each other, and what the model says under them."""

from __future__ import annotations

from ncclcheck.advice.rule import merged, predictions, used_ports, value_of
from ncclcheck.model.fact import Missing
from tests.advice.clusters import configured, with_rdma
from tests.builders import without
from tests.fact_builders import some
from tests.nccl.hardware import port


def test_later_changes_win_and_hosts_add_up() -> None:
    assert merged({"a": {"X": "1", "Y": None}}, {"a": {"Y": "2"}, "b": {}}) == {
        "a": {"X": "1", "Y": "2"},
        "b": {},
    }


def test_every_node_is_predicted_under_its_own_change() -> None:
    snapshot = with_rdma(2, port())
    found = some(predictions(snapshot, {"node02": {"NCCL_IB_DISABLE": "1"}}))
    assert [found[host].network for host in ("node01", "node02")] == ["IB", "Socket"]
    assert [used_port.device for used_port in used_ports(snapshot.nodes[0].facts, found["node01"])] == [
        "mlx5_0"
    ]
    assert used_ports(snapshot.nodes[1].facts, found["node02"]) == ()


def test_what_is_not_known_of_one_node_is_not_known_of_all() -> None:
    missing = predictions(without(with_rdma(2, port()), "node02", "interfaces"), {})
    assert isinstance(missing, Missing)
    assert missing.detail.startswith("node02: ")


def test_a_value_is_what_nccl_sees_config_files_included() -> None:
    snapshot = configured(with_rdma(2, NCCL_NET="IB"), "node02", NCCL_IB_HCA="mlx5")
    first, second = (node.facts for node in snapshot.nodes)
    assert (value_of(first, "NCCL_NET", {}), value_of(first, "NCCL_NET", {"NCCL_NET": None})) == ("IB", None)
    assert (value_of(first, "NCCL_IB_HCA", {}), value_of(second, "NCCL_IB_HCA", {})) == (None, "mlx5")
