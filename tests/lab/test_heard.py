"""Nodes that cannot reach node 0 are heard all the same; where nobody can know, the user is told why that may be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab import faults
from tests.lab.launched import run
from tests.lab.nodes import Lab
from tests.lab.test_preflight import LONG_BEFORE_S, PATIENT

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def test_a_node_that_cannot_resolve_the_master_is_heard_long_before_the_join_deadline(lab: LabOf) -> None:
    three = lab(3)
    faults.forget_name(three["node3"], "node1")
    ended = run(three, "preflight", *PATIENT, master="node1")
    assert {node.code for node in ended.values()} == {1}
    finding = ended["node1"].finding("master-unresolvable")
    assert finding["hosts"] == ["node3"], str(ended["node1"].finished)
    # Nothing proves who sent a datagram, so its origin is named.
    assert "10.78.0.3, which nothing proves to be this node" in str(finding["evidence"])
    own = ended["node3"].finding("master-unresolvable")
    assert "a datagram from 10.78.0.1 says that node 0 serves there" in own["summary"]
    assert own["fixes"][0]["env"] == {"MASTER_ADDR": "10.78.0.1"}
    assert max(node.finished.seconds for node in ended.values()) <= LONG_BEFORE_S


def test_a_node_of_which_node_0_drops_every_packet_is_heard_through_another_node(lab: LabOf) -> None:
    three = lab(3)
    faults.drop(three["node1"], source=three["node3"], protocol="all")
    ended = run(three, "preflight", *PATIENT)
    finding = ended["node1"].finding("master-filtered")
    assert finding["hosts"] == ["node3"], str(ended["node1"].finished)
    assert "datagram to node2 from 10.78.0.3" in str(finding["evidence"])
    assert "passed on to node 0" in str(finding["evidence"])
    assert {node.code for node in ended.values()} == {1}
    assert max(node.finished.seconds for node in ended.values()) <= LONG_BEFORE_S


@pytest.mark.further
def test_a_name_that_leads_to_another_node_is_told_from_a_late_node_0(lab: LabOf) -> None:
    three = lab(3)
    faults.wrong_name(three["node3"], "node1", three["node2"].address)
    ended = run(three, "preflight", *PATIENT, master="node1")
    for name in ("node1", "node3"):
        finding = ended[name].finding("master-refused")
        assert finding["hosts"] == ["node3"], str(ended[name].finished)
        assert "a datagram from 10.78.0.1 says that node 0 serves there" in finding["summary"]
    assert max(node.finished.seconds for node in ended.values()) <= LONG_BEFORE_S


@pytest.mark.further
def test_a_node_whose_own_firewall_lets_nothing_out_to_node_0_says_so(lab: LabOf) -> None:
    three = lab(3)
    faults.drop_outgoing(three["node3"], three["node1"])
    ended = run(three, "preflight", *PATIENT)
    for name in ("node1", "node3"):
        finding = ended[name].finding("master-filtered")
        assert finding["hosts"] == ["node3"], str(ended[name].finished)
        assert "its own firewall does not let packets to there out" in finding["summary"]
    assert max(node.finished.seconds for node in ended.values()) <= LONG_BEFORE_S


@pytest.mark.further
def test_who_is_silent_and_why_that_may_be_is_said_after_ten_seconds(lab: LabOf) -> None:
    three = lab(3)
    faults.unplug(three["node3"])
    ended = run(three, "preflight", "--join-timeout", "16", nodes=three.nodes[:2])
    assert {node.code for node in ended.values()} == {3}
    said = ended["node1"].finished.stderr
    assert "nothing is heard of node rank 2 by TCP, by datagram, or through another node" in said
    assert "it was told another master address than 10.78.0.1" in said
    assert ended["node1"].finished.seconds >= 16


@pytest.mark.further
def test_where_node_0_was_never_started_its_host_is_named_and_no_node_that_waits_for_it(lab: LabOf) -> None:
    three = lab(3)
    ended = run(three, "preflight", "--join-timeout", "5", nodes=three.nodes[1:])
    for node in ended.values():
        finding = node.finding("master-refused")
        assert finding["hosts"] == ["10.78.0.1"], str(node.finished)
        assert "its process was not started or has ended" in finding["summary"]
        assert node.code == 1
