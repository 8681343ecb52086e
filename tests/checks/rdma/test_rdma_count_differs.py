"""NC302 rdma-count-differs."""

from __future__ import annotations

from ncclcheck.model.hardware import Rdma
from tests.builders import everywhere, with_environment, with_facts
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import healthy_rdma, ib_ports, rdma_cluster, with_ports
from tests.nccl.hardware import port

SLUG = "rdma-count-differs"


def test_the_node_that_lost_a_card_is_named_with_the_card() -> None:
    found = finding(SLUG, with_ports(rdma_cluster(4), "node03", *ib_ports()[:5], *ib_ports()[6:]))
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "7 on node03, 8 on node01, node02 and node04" in found.summary
    assert "node03 lacks mlx5_5:1" in found.summary
    assert {evidence.source for evidence in found.evidence} == {"/sys/class/infiniband"}


def test_a_node_without_any_is_an_error() -> None:
    found = finding(SLUG, with_facts(rdma_cluster(3), "node02", rdma=Rdma((), (), ())))
    assert (found.severity, found.hosts) == ("error", ("node02",))


def test_a_tie_is_said_to_be_one() -> None:
    found = finding(SLUG, with_ports(rdma_cluster(2), "node02", *ib_ports()[:4]))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_what_the_user_leaves_out_does_not_count() -> None:
    snapshot = with_ports(rdma_cluster(3), "node02", *ib_ports(), port("mlx5_8"))
    assert finding(SLUG, snapshot).hosts == ("node02",)
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, NCCL_IB_HCA="^mlx5_8")
    assert is_silent(SLUG, snapshot)


def test_efa_ports_are_counted_by_themselves() -> None:
    efa = [port(f"rdmap_{number}", link_layer="Unknown", driver="efa") for number in range(4)]
    snapshot = everywhere(rdma_cluster(3), rdma=healthy_rdma(*efa))
    assert is_silent(SLUG, snapshot)
    found = finding(SLUG, with_ports(snapshot, "node01", *efa[:3]))
    assert found.hosts == ("node01",)
    assert "EFA ports" in found.summary


def test_no_devices_anywhere_is_not_applicable() -> None:
    assert run(SLUG, everywhere(rdma_cluster(2), rdma=Rdma((), (), ()))).outcome == "not_applicable"
