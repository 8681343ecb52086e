"""A fault is fixed, a slow choice sped up, and a bootstrap left alone; `test_interface.py` has the whole decision."""

from __future__ import annotations

from ncclcheck.advice.interface import decide
from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import read_reach
from ncclcheck.advice.setting import ChosenPlaces
from ncclcheck.advice.sockets import Proposal, fault_of, keep_for_bootstrap, repair, speed_up
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import node_choice
from tests.advice.clusters import of_nodes, two_networks, unasked, with_bandwidth, with_probes, with_rdma
from tests.fact_builders import interface, some
from tests.nccl.hardware import port

ETH0 = {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}


def fault(snapshot: Snapshot) -> str:
    choices = {node.host: some(node_choice(node.facts)) for node in snapshot.nodes}
    return fault_of(snapshot, some(read_reach(snapshot)), choices)


def faster(snapshot: Snapshot, places: ChosenPlaces) -> Proposal | str:
    reach = some(read_reach(snapshot))
    return speed_up(snapshot, reach, find_networks(snapshot, reach), places)


def test_a_fault_is_no_interface_or_loopback_or_what_the_probes_say() -> None:
    assert fault(two_networks(2)) == ""
    assert fault(two_networks(2, NCCL_SOCKET_IFNAME="nosuch")).startswith(
        "NCCL finds no interface on node01, node02"
    )
    assert "which no other node can reach" in fault(two_networks(2, NCCL_SOCKET_IFNAME="lo"))
    assert fault(with_probes(two_networks(2), "filtered", interface="eth0")).endswith(
        "eth0 (10.0.0.2): filtered"
    )


def test_a_link_local_choice_is_not_called_unreachable_but_not_known() -> None:
    nodes = [
        unasked(interface("eth0", f"10.0.0.{one}/24", f"fe80::{one}/64"), NCCL_SOCKET_FAMILY="AF_INET6")
        for one in (1, 2)
    ]
    assert fault(of_nodes(*nodes)).startswith(
        "whether NCCL's choice is reachable is not known: node01 to node02 on eth0 (fe80::2): not tested, since a link"
    )


def test_mending_leads_to_a_usable_network_or_says_what_was_tried() -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0")
    reach = some(read_reach(snapshot))
    networks = find_networks(snapshot, reach)
    found = repair(snapshot, reach, networks, networks[:1], "it is broken")
    assert isinstance(found, Proposal)
    assert (found.env_by_host["node01"], found.why) == ({"NCCL_SOCKET_IFNAME": "eth1"}, "it is broken")
    assert "No interface is mutually reachable" in str(
        repair(snapshot, reach, networks[1:], (), "it is broken")
    )


def test_only_a_clearly_faster_network_is_a_reason() -> None:
    found = faster(with_bandwidth(two_networks(2), eth0=1.0, eth1=9.0), ETH0)
    assert isinstance(found, Proposal)
    assert found.places == {"node01": ("eth1", "10.0.1.1"), "node02": ("eth1", "10.0.1.2")}
    assert str(faster(two_networks(2), ETH0)).endswith(
        "is reachable between all nodes: nothing to set. Whether another network is faster was not measured"
    )


def test_a_bootstrap_needs_no_faster_network() -> None:
    snapshot = with_bandwidth(with_rdma(2, port()), eth0=1.0, eth1=9.0)
    reach = some(read_reach(snapshot))
    note = keep_for_bootstrap(snapshot, reach, find_networks(snapshot, reach), ETH0, "IB")
    assert "IB carries the data, and sockets only the bootstrap; eth1: 8.91 Gbit/s" in note
    decision = decide(snapshot)
    assert not decision.proposals
    assert note in decision.notes


def test_rdma_that_is_to_be_switched_on_again_makes_the_faster_sockets_idle() -> None:
    decision = decide(with_bandwidth(with_rdma(2, port(), NCCL_IB_DISABLE="1"), eth0=1.0, eth1=9.0))
    assert not decision.proposals
    assert [rule.env_by_host["node01"] for rule in decision.rules] == [{"NCCL_IB_DISABLE": None}]


def test_a_fault_of_the_sockets_is_mended_with_rdma_too() -> None:
    decision = decide(with_probes(with_rdma(2, port(), NCCL_IB_DISABLE="1"), "filtered", interface="eth0"))
    assert [proposal.env_by_host["node02"] for proposal in decision.proposals] == [
        {"NCCL_SOCKET_IFNAME": "eth1"}
    ]
    assert [rule.env_by_host["node01"] for rule in decision.rules] == [{"NCCL_IB_DISABLE": None}]


def test_a_broken_network_that_sockets_take_as_a_device_too_is_told() -> None:
    def notes(snapshot: Snapshot) -> str:
        decision = decide(snapshot)
        assert not decision.proposals
        return " ".join(decision.notes)

    told = "take eth1 as a network device too, on which not all nodes can connect (node01 to node02 on eth1"
    assert told in notes(with_probes(with_rdma(2), "filtered", interface="eth1"))
    assert told not in notes(with_probes(with_rdma(2, port()), "filtered", interface="eth1"))
    named = with_rdma(2, NCCL_SOCKET_IFNAME="eth0")
    assert told not in notes(with_probes(named, "filtered", interface="eth1"))
    assert told not in notes(with_rdma(2))
