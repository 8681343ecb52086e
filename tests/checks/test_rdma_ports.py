"""Which RDMA ports matter to a job."""

from __future__ import annotations

from ncclcheck.checks.rdma_ports import (
    PortOn,
    by_hosts,
    environment_of,
    file_of,
    has_gpus,
    is_verbs,
    not_surveyed,
    pieces,
    surveyed,
    without_devices,
)
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclChoice, NcclConfigFile, NodeFacts
from ncclcheck.model.hardware import Rdma
from tests.builders import cluster, everywhere, node, with_environment, with_facts, without
from tests.fact_builders import GONE
from tests.hardware_builders import ib_ports, rdma_cluster, with_rdma
from tests.nccl.hardware import UNREAD, port

UNTOLD = Missing("absent", "a recorded tree does not tell")


def devices(ports: object) -> list[str]:
    assert isinstance(ports, tuple)
    return [one.device for one in ports]


def test_nccl_takes_what_its_list_keeps() -> None:
    snapshot = with_environment(rdma_cluster(1), "node01", NCCL_IB_HCA="^=mlx5_0,mlx5_1")
    assert devices(surveyed(snapshot)[0].selected) == [f"mlx5_{rail}" for rail in range(2, 8)]


def test_it_takes_none_where_rdma_is_switched_off() -> None:
    for name, value in (("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "socket")):
        assert surveyed(with_environment(rdma_cluster(1), "node01", **{name: value}))[0].selected == ()


def test_a_port_counts_as_active_only_if_its_device_can_be_opened() -> None:
    ports = (port("mlx5_0"), port("mlx5_1", state="DOWN"), port("mlx5_2"))
    snapshot = with_rdma(rdma_cluster(1), "node01", ports=ports, unusable_files=("uverbs2",))
    assert devices(surveyed(snapshot)[0].active) == ["mlx5_0"]


def test_a_machine_that_tells_no_variables_has_none_set_and_a_lost_environment_is_unknown() -> None:
    assert environment_of(NodeFacts(environment=UNTOLD)) == {}
    assert environment_of(NodeFacts(environment={"A": "b"}, nccl=UNTOLD)) == {"A": "b"}
    file = NcclConfigFile("/etc/nccl.conf", {"NCCL_IB_HCA": "mlx5_0"})
    recorded = NodeFacts(environment=UNTOLD, nccl=NcclChoice(UNTOLD, (file,), home_set=False))
    assert environment_of(recorded) == {"NCCL_IB_HCA": "mlx5_0"}
    assert environment_of(NodeFacts(environment=GONE, nccl=UNTOLD)) == GONE
    snapshot = without(rdma_cluster(2), "node02", "environment")
    assert [one.host for one in surveyed(snapshot)] == ["node01"]
    assert [known.hosts for known in not_surveyed(snapshot)] == [("node02",)]


def test_efa_is_told_from_verbs() -> None:
    assert not is_verbs(port(link_layer="Unknown"))
    assert not is_verbs(port(driver="efa", link_layer=UNREAD))
    assert is_verbs(port(link_layer=UNREAD))


def test_gpus_are_those_of_the_bus_or_the_driver() -> None:
    assert has_gpus(node(rdma_cluster(1), "node01").facts) is True
    bare = with_facts(cluster(1), "node01", gpus=GONE)
    assert has_gpus(node(bare, "node01").facts) is None


def test_no_device_anywhere_is_said() -> None:
    empty = everywhere(rdma_cluster(2), rdma=Rdma((), (), ()))
    assert [device.reason for device in without_devices(surveyed(empty))] == [
        "node01 and node02: no RDMA device in /sys/class/infiniband"
    ]
    assert list(without_devices(surveyed(rdma_cluster(2)))) == []


def test_what_is_equal_is_told_once() -> None:
    first, second = PortOn("a", ib_ports()[0]), PortOn("b", ib_ports()[0])
    found = pieces([(first, "x", "y", "z"), (second, "x", "y", "z")])
    assert [(evidence.hosts, evidence.subject) for evidence in found] == [(("a", "b"), "mlx5_0:1")]
    assert by_hosts([("a", "p"), ("a", "q"), ("b", "p"), ("b", "q"), ("c", "p")]) == "p, q on a and b; p on c"
    assert file_of(ib_ports()[0], "state") == "/sys/class/infiniband/mlx5_0/ports/1/state"


def test_a_device_whose_ports_cannot_be_seen_is_not_passed_over() -> None:
    blind = with_rdma(rdma_cluster(2), "node02", unread={"mlx5_9": "no such folder"})
    assert [known.hosts for known in not_surveyed(blind)] == [("node02",)]
    lone = with_rdma(rdma_cluster(1), "node01", ports=(), unread={"mlx5_9": "no such folder"})
    assert list(without_devices(surveyed(lone))) == []
