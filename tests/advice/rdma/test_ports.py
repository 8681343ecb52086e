"""NCCL_IB_HCA is given where NCCL would use a port that is none of the fabric's, and in the exact form."""

from __future__ import annotations

from ncclcheck.advice.rdma.ports import advise_ports
from ncclcheck.advice.rule import Changes, Rule, predictions, used_ports
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import with_rdma
from tests.builders import everywhere, with_facts
from tests.fact_builders import some
from tests.nccl.hardware import bus, device, gpu, port, rdma, roce

COMPUTE = tuple(port(f"mlx5_{number}") for number in range(4))
STORAGE = port("mlx5_9", rate_gbps=100.0, board_id="MT_0000000359", hca_type="MT4123")


def advised(snapshot: Snapshot, base: Changes) -> tuple[Rule | None, tuple[str, ...]]:
    return advise_ports(snapshot, base, some(predictions(snapshot, base)))


def changes(snapshot: Snapshot) -> dict[str, dict[str, str | None]]:
    rule, notes = advised(snapshot, {})
    assert rule is not None, notes
    return rule.env_by_host


def on_all(snapshot: Snapshot) -> str | None:
    found = list(changes(snapshot).values())
    assert len(found) == len(snapshot.nodes)
    assert all(one == found[0] for one in found)
    return found[0]["NCCL_IB_HCA"]


def nothing(snapshot: Snapshot) -> bool:
    return advised(snapshot, {}) == (None, ())


def used(snapshot: Snapshot, host: str) -> list[str]:
    predicted = some(predictions(snapshot, changes(snapshot)))[host]
    facts = next(node.facts for node in snapshot.nodes if node.host == host)
    return [used_port.device for used_port in used_ports(facts, predicted)]


def test_equal_ports_and_no_ports_need_nothing() -> None:
    assert nothing(with_rdma(2, *COMPUTE))
    assert nothing(with_rdma(2, *(roce(f"mlx5_{number}") for number in range(2))))
    assert nothing(with_rdma(2))
    assert nothing(with_rdma(2, *COMPUTE, port("mlx5_9", state="DOWN", rate_gbps=10.0, board_id="x")))


def test_a_slower_port_of_another_card_is_left_out_by_exact_names() -> None:
    snapshot = with_rdma(2, *COMPUTE, STORAGE)
    assert on_all(snapshot) == "=mlx5_0,mlx5_1,mlx5_2,mlx5_3"
    assert used(snapshot, "node02") == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    rule, _ = advised(snapshot, {})
    assert rule is not None
    assert "NCCL would use mlx5_9:1 (100 Gbit/s InfiniBand) too, beside the fabric of mlx5_0:1" in rule.why


def test_a_slower_port_of_the_same_card_is_a_fault_and_not_hidden() -> None:
    assert nothing(with_rdma(2, *COMPUTE, port("mlx5_9", rate_gbps=200.0)))
    assert nothing(with_rdma(2, COMPUTE[0], port("mlx5_8", rate_gbps=100.0), port("mlx5_9", rate_gbps=100.0)))


def test_two_link_layers_cannot_connect_so_the_faster_stays() -> None:
    snapshot = with_rdma(2, *COMPUTE, roce("mlx5_bond_0", rate_gbps=100.0))
    assert on_all(snapshot) == "=mlx5_0,mlx5_1,mlx5_2,mlx5_3"
    slow = tuple(port(f"mlx4_{number}", rate_gbps=56.0) for number in range(2))
    assert on_all(with_rdma(2, *slow, roce("mlx5_0"))) == "=mlx5_0"
    other = with_facts(with_rdma(2, *COMPUTE), "node02", rdma=rdma(roce()))
    assert "no link layer in common" in advised(other, {})[1][0]


def test_a_port_without_a_gpu_near_it_is_left_out_where_every_gpu_has_another() -> None:
    pci = bus(
        gpu("0000:a1:00.0", "0000:a0:00.0", "0000:a0:01.0"),
        device("0000:10:00.0", "0000:a0:00.0", "0000:a0:01.0"),
        gpu("0000:b1:00.0", "0000:b0:00.0", "0000:b0:01.0"),
        device("0000:11:00.0", "0000:b0:00.0", "0000:b0:01.0"),
        device("0000:12:00.0"),
    )
    snapshot = everywhere(with_rdma(2, *COMPUTE[:3]), pci=pci)
    assert on_all(snapshot) == "=mlx5_0,mlx5_1"
    lonely = everywhere(with_rdma(2, COMPUTE[0], COMPUTE[2]), pci=pci)  # 0000:b1 has none but the far one
    assert nothing(lonely)


def test_a_prefix_that_takes_more_than_its_device_is_made_exact() -> None:
    ports = (*COMPUTE, port("mlx5_10"), port("mlx5_11"))
    assert on_all(with_rdma(2, *ports, NCCL_IB_HCA="mlx5_1,mlx5_2")) == "=mlx5_1,mlx5_2"
    for value in ("mlx5", "=mlx5_1", "^mlx5_1", "mlx5_1,hfi", "mlx5_0,mlx5_2"):
        assert nothing(with_rdma(2, *ports, NCCL_IB_HCA=value)), value


def test_a_list_that_somebody_wrote_is_not_judged_by_speed() -> None:
    assert nothing(with_rdma(2, *COMPUTE, STORAGE, NCCL_IB_HCA="=mlx5_0,mlx5_9"))


def test_only_the_wanted_port_of_a_device_is_named_with_its_number() -> None:
    two = (port("mlx5_0"), port("mlx5_0", 2, link_layer="Ethernet", rate_gbps=100.0))
    assert on_all(with_rdma(2, *two)) == "=mlx5_0:1"


def test_names_that_differ_are_one_list_where_that_is_right_else_one_for_each_that_needs_it() -> None:
    def node(*ports: RdmaPort) -> Snapshot:
        return with_facts(with_rdma(2, *COMPUTE[:2], STORAGE), "node02", rdma=rdma(*ports))

    renamed = (port("ibn_0"), port("ibn_1"), STORAGE)
    assert on_all(node(*renamed)) == "=mlx5_0,mlx5_1,ibn_0,ibn_1"
    swapped = (port("mlx5_9"), port("mlx5_8"), port("mlx5_0", rate_gbps=100.0, board_id="MT_0000000359"))
    assert changes(node(*swapped)) == {
        "node01": {"NCCL_IB_HCA": "=mlx5_0,mlx5_1"},
        "node02": {"NCCL_IB_HCA": "=mlx5_9,mlx5_8"},
    }
    assert changes(node(*COMPUTE[:2], port("mlx5_9")))["node02"] == {}
