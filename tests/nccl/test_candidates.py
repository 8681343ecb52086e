"""Which interfaces other nodes could use."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.nccl.candidates import candidate_interfaces, gloo_addresses
from tests.fact_builders import docker0, interface, loopback, node_facts, some
from tests.nccl.test_prediction import facts, unasked


def test_candidates_are_what_others_could_use_and_the_chosen_one_is_first() -> None:
    one = unasked(
        environment={"NCCL_SOCKET_IFNAME": "eth1"},
        interfaces=(
            loopback(),
            docker0(),
            interface("cali1", "fe80::1/64", kind="virtual"),
            interface("eth0", "10.0.0.1/24"),
            interface("eth1", "fe80::2/64", "10.0.1.1/24", "fd00::1/64"),
            interface("eth2", "10.0.2.1/24", running=False),
            interface("eth3", "10.0.3.1/24", up=False),
            interface("eth4", "fe80::4/64", "fd00::4/64"),
        ),
    )
    assert candidate_interfaces(one) == (
        ("eth1", "10.0.1.1"),
        ("eth0", "10.0.0.1"),
        ("eth4", "fd00::4"),
        ("docker0", "172.17.0.1"),
    )


def test_candidates_are_bounded_and_hardware_is_kept() -> None:
    bridges = [interface(f"br{n}", f"172.18.{n}.1/24", kind="bridge") for n in range(20)]
    found = candidate_interfaces(unasked(interfaces=(loopback(), *bridges, interface("eth0", "10.0.0.1/24"))))
    assert len(found) == 8
    assert ("eth0", "10.0.0.1") in found
    assert found[0] == ("br0", "172.18.0.1")  # br* is not in NCCL's list of what it avoids


def test_nothing_is_a_candidate_where_no_interface_is_known() -> None:
    assert candidate_interfaces(facts(interfaces=Missing("error", "no /proc"))) == ()


def test_what_gloo_binds_that_another_node_could_call() -> None:
    healthy = node_facts(0, 2)
    names = replace(some(healthy.names), addresses=("10.67.0.1",))
    eth0 = interface("eth0", "10.0.0.1/24", "10.67.0.1/24")
    node = replace(healthy, names=names, interfaces=(loopback(), eth0), environment={})
    assert gloo_addresses(node) == (("eth0", "10.67.0.1"),)
    local = replace(node, names=replace(names, addresses=("127.0.1.1",)))
    assert gloo_addresses(local) == ()
