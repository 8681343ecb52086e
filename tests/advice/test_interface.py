"""A setting is proposed only where one is needed, only for a network all nodes reach, and as small as it can be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.advice.interface import decide, propose
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from ncclcheck.model.snapshot import Coverage, Snapshot
from tests.advice.clusters import (
    NO_LIBRARY,
    of_nodes,
    two_interfaces,
    two_networks,
    unasked,
    with_bandwidth,
    with_probes,
)
from tests.builders import cluster, everywhere, seen_alone, with_choice, with_facts, with_outcome, with_silent
from tests.fact_builders import answer, docker0, interface, nccl_choice, some

IFNAME = "NCCL_SOCKET_IFNAME"


def nccl_env(snapshot: Snapshot) -> dict[str, dict[str, str | None]]:
    (proposal,) = propose(snapshot)
    return proposal.env_by_host


def same_on_all(snapshot: Snapshot) -> dict[str, str | None]:
    by_host = nccl_env(snapshot)
    assert len(by_host) == len(snapshot.nodes)
    values = list(by_host.values())
    assert all(value == values[0] for value in values)
    return values[0]


def notes(snapshot: Snapshot) -> str:
    decision = decide(snapshot)
    assert not decision.proposals
    return "\n".join(decision.notes)


# where nothing is needed, or nothing can be said


def test_a_healthy_cluster_needs_no_setting() -> None:
    assert "NCCL: its own choice, eth0, is reachable between all nodes: nothing to set" in notes(cluster())


def test_one_node_has_no_network_to_advise_on() -> None:
    assert "one node" in notes(cluster(1))


def test_a_setting_of_the_user_that_works_is_left_alone() -> None:
    assert "eth1, is reachable" in notes(two_networks(NCCL_SOCKET_IFNAME="eth1"))


def test_a_silent_node_leaves_reach_unproven() -> None:
    assert "no results from node03" in notes(with_silent(cluster(), "node03"))


def test_a_node_that_met_nobody_advises_nothing() -> None:
    alone = seen_alone(cluster(), "node02")
    assert not propose(alone)
    assert "did not meet" in notes(replace(alone, silent=with_silent(cluster(), "node01").silent))


def test_without_probes_nothing_is_advised() -> None:
    snapshot = replace(two_networks(NCCL_SOCKET_IFNAME="^docker0"), probes=Missing("timeout", "cut short"))
    assert "cut short" in notes(snapshot)


def test_a_sample_that_was_not_completed_proves_nothing() -> None:
    snapshot = replace(two_networks(NCCL_SOCKET_IFNAME="lo"), coverage=Coverage(13, 99, "a sample"))
    assert "12 of 13 planned pairs" in notes(snapshot)


@pytest.mark.parametrize("section", ["nccl", "environment", "interfaces"])
def test_an_unknown_choice_is_not_advised_on(section: str) -> None:
    snapshot = with_facts(two_networks(), "node02", **{section: Missing("timeout", "no answer")})
    assert "its choice on node02 is not known" in notes(snapshot)


def test_a_wrong_choice_whose_change_cannot_be_foreseen_is_not_advised_on() -> None:
    snapshot = with_choice(cluster(), "node02", "lo", "127.0.0.1")
    snapshot = with_facts(snapshot, "node02", environment=Missing("timeout", "no answer"))
    assert "what a setting would do on node02 is not known" in notes(snapshot)


# what is proposed


def test_a_harmful_name_is_unset_where_the_default_is_right() -> None:
    assert same_on_all(two_networks(NCCL_SOCKET_IFNAME="^docker0")) == {IFNAME: None}


def test_a_name_that_matches_nothing_is_unset_too() -> None:
    (proposal,) = propose(two_networks(NCCL_SOCKET_IFNAME="ens9"))
    assert set(proposal.places.values()) == {("eth0", f"10.0.0.{n}") for n in range(1, 5)}
    assert proposal.why.startswith("NCCL finds no interface on node01")


def test_the_network_that_works_is_named_where_the_default_fails() -> None:
    snapshot = with_probes(two_networks(), "filtered", interface="eth0")
    assert same_on_all(snapshot) == {IFNAME: "eth1"}
    (proposal,) = propose(snapshot)
    assert proposal.evidence == "all 12 connections between the 4 nodes on eth1 succeeded"
    assert "node01 to node02 on eth0 (10.0.0.2): filtered" in proposal.why


def test_the_exact_form_is_used_where_a_prefix_would_cover_more() -> None:
    more = [
        unasked(
            interface("eth0", f"10.0.0.{n}/24"),
            interface("eth1", f"10.0.1.{n}/24"),
            interface("eth10", running=False),
        )
        for n in (1, 2)
    ]
    snapshot = with_probes(of_nodes(*more), "refused", interface="eth0")
    assert same_on_all(snapshot) == {IFNAME: "=eth1"}


def test_the_faster_network_is_preferred_and_hardware_to_bridges() -> None:
    def node(number: int) -> dict[str, object]:
        slow = replace(interface("eth1", f"10.0.1.{number}/24"), speed_mbps=1000)
        bridge = replace(interface("br0", f"10.0.3.{number}/24", kind="bridge"), speed_mbps=400_000)
        return unasked(
            interface("eth0", f"10.0.0.{number}/24"), slow, bridge, interface("eth2", f"10.0.2.{number}/24")
        )

    snapshot = with_probes(of_nodes(node(1), node(2)), "filtered", interface="eth0")
    assert same_on_all(snapshot) == {IFNAME: "eth2"}


def test_a_default_that_is_worse_than_another_network_is_not_gone_back_to() -> None:
    def node(number: int) -> dict[str, object]:
        slow = replace(interface("eth0", f"10.0.0.{number}/24"), speed_mbps=1000)
        return unasked(slow, interface("eth1", f"10.0.1.{number}/24"), NCCL_SOCKET_IFNAME="ens9")

    assert same_on_all(of_nodes(node(1), node(2))) == {IFNAME: "eth1"}


def test_names_that_differ_become_a_list_that_is_right_everywhere() -> None:
    first = unasked(interface("br0", "10.9.0.1/24", kind="bridge"), interface("eth0", "10.0.0.1/24", index=3))
    second = unasked(
        interface("br0", "10.9.0.2/24", kind="bridge"), interface("ens3", "10.0.0.2/24", index=3)
    )
    snapshot = with_probes(of_nodes(first, second), "filtered", interface="br0")
    assert same_on_all(snapshot) == {IFNAME: "eth0,ens3"}


def test_what_a_config_file_sets_is_blocked_by_an_empty_value_where_the_default_is_right() -> None:
    first = unasked(docker0(), interface("eth0", "10.0.0.1/24"), NCCL_SOCKET_IFNAME="docker0")
    second = unasked(docker0(), interface("ens3", "10.0.0.2/24"), NCCL_SOCKET_IFNAME="docker0")
    snapshot = with_probes(of_nodes(first, second), "self", interface="docker0")
    assert same_on_all(snapshot) == {IFNAME: None}
    second["nccl"] = NcclChoice(NO_LIBRARY, (NcclConfigFile("/etc/nccl.conf", {IFNAME: "docker0"}),), True)
    snapshot = with_probes(of_nodes(first, second), "self", interface="docker0")
    assert same_on_all(snapshot) == {IFNAME: ""}
    (proposal,) = propose(snapshot)
    assert "the empty value keeps NCCL from taking the one in its config file" in proposal.evidence


def test_a_value_per_host_is_the_last_resort_and_only_for_those_that_need_it() -> None:
    """node02 has an eth0 as well, of another network, which any list with node01's eth0 in it would take."""
    first = unasked(interface("eth0", "10.0.0.1/24"))
    second = unasked(interface("eth0", "192.168.9.2/24"), interface("eth1", "10.0.0.2/24", index=3))
    snapshot = with_probes(of_nodes(first, second), "filtered", address="192.168.9.2")
    assert nccl_env(snapshot) == {"node01": {}, "node02": {IFNAME: "=eth1"}}


def test_a_routed_network_needs_neither_names_nor_subnets_in_common() -> None:
    first = unasked(interface("eth5", "10.5.0.1/31"), NCCL_SOCKET_IFNAME="lo")
    second = unasked(interface("ens7", "10.7.0.1/31"), NCCL_SOCKET_IFNAME="lo")
    assert same_on_all(of_nodes(first, second)) == {IFNAME: None}


def test_comm_id_is_unset_since_it_makes_nccl_ignore_the_name() -> None:
    snapshot = two_networks(NCCL_COMM_ID="127.0.0.1:5000", NCCL_SOCKET_IFNAME="eth1")
    assert same_on_all(snapshot) == {"NCCL_COMM_ID": None}


def test_comm_id_of_a_name_that_nobody_knows_is_unset_though_no_model_says_what_the_name_means() -> None:
    refused = replace(answer(None, None), result_code=4, message="Invalid NCCL_COMM_ID")
    snapshot = everywhere(two_networks(NCCL_COMM_ID="nohost:1"), nccl=nccl_choice(refused))
    assert same_on_all(snapshot) == {"NCCL_COMM_ID": None}
    assert decide(with_probes(snapshot, "filtered")).notes[0].startswith("NCCL: NCCL finds no interface on")


def test_a_family_without_reachable_addresses_is_unset() -> None:
    def node(number: int) -> dict[str, object]:
        return unasked(
            interface("eth0", f"10.0.0.{number}/24", f"fe80::{number}/64"), NCCL_SOCKET_FAMILY="AF_INET6"
        )

    assert same_on_all(of_nodes(node(1), node(2))) == {"NCCL_SOCKET_FAMILY": None}


def test_only_one_node_being_wrong_changes_all_the_same_way() -> None:
    nodes = [two_interfaces(n, **({IFNAME: "lo"} if n == 3 else {})) for n in range(1, 5)]
    snapshot = of_nodes(*nodes)
    assert same_on_all(snapshot) == {IFNAME: None}
    (proposal,) = propose(snapshot)
    assert "NCCL would bind lo (127.0.0.1) on node03" in proposal.why


def test_taking_away_is_not_enough_where_one_node_would_then_choose_a_slow_interface() -> None:
    """Without the setting node01 takes its fast eth1, which comes first there, and node02 its slow eth0."""
    first = unasked(
        interface("eth1", "10.0.1.1/24"), interface("eth0", "10.0.0.1/24", index=3), NCCL_SOCKET_IFNAME="lo"
    )
    second = unasked(
        interface("eth0", "10.0.0.2/24"), interface("eth1", "10.0.1.2/24", index=3), NCCL_SOCKET_IFNAME="lo"
    )
    assert same_on_all(of_nodes(first, second)) == {IFNAME: None}
    assert same_on_all(with_bandwidth(of_nodes(first, second), eth0=1.0, eth1=5.0)) == {IFNAME: "eth1"}


# where the choice works, and another network is faster


def test_a_network_that_was_measured_clearly_faster_is_proposed() -> None:
    snapshot = with_bandwidth(two_networks(), eth0=0.94, eth1=9.4)
    assert same_on_all(snapshot) == {IFNAME: "eth1"}
    (proposal,) = propose(snapshot)
    assert "reachable but slow: eth0: 0.94 Gbit/s (0.921 to 0.959 over 12 transfers)" in proposal.why
    assert "at eth1: 9.4 Gbit/s" in proposal.evidence


def test_a_slow_network_that_the_user_named_is_left_by_unsetting_where_that_does() -> None:
    snapshot = with_bandwidth(two_networks(NCCL_SOCKET_IFNAME="eth1"), eth0=9.4, eth1=0.94)
    assert same_on_all(snapshot) == {IFNAME: None}


@pytest.mark.parametrize(("fast", "spread"), [(1.2, 0.02), (1.0, 0.02), (1.6, 0.4)])
def test_a_small_or_uncertain_gain_is_no_reason_for_a_setting(fast: float, spread: float) -> None:
    text = notes(with_bandwidth(two_networks(), eth0=1.0, eth1=fast, spread=spread))
    assert "no other network is clearly faster: nothing to set (eth0: 1 Gbit/s" in text


def test_a_figure_that_the_cpu_limited_counts_only_where_the_links_say_the_same() -> None:
    def node(number: int, slow_mbps: int) -> dict[str, object]:
        slow = replace(interface("eth0", f"10.0.0.{number}/24"), speed_mbps=slow_mbps)
        return unasked(slow, interface("eth1", f"10.0.1.{number}/24", index=3))

    alike = with_bandwidth(of_nodes(node(1, 100_000), node(2, 100_000)), 0.99, eth0=20.0, eth1=40.0)
    assert "limited by the CPU" in notes(alike)
    slower = with_bandwidth(of_nodes(node(1, 25_000), node(2, 25_000)), 0.99, eth0=20.0, eth1=40.0)
    assert same_on_all(slower) == {IFNAME: "eth1"}


def test_a_faster_link_that_was_not_measured_is_told_and_not_advised() -> None:
    def node(number: int) -> dict[str, object]:
        slow = replace(interface("eth0", f"10.0.0.{number}/24"), speed_mbps=1000)
        return unasked(slow, interface("eth1", f"10.0.1.{number}/24", index=3))

    assert "nothing to set (eth1: not measured, link speed 100 Gbit/s;" in notes(of_nodes(node(1), node(2)))


def test_of_the_networks_that_work_the_one_measured_fastest_is_named_whatever_its_link_says() -> None:
    def node(number: int) -> dict[str, object]:
        fast = replace(interface("eth2", f"10.0.2.{number}/24", index=4), speed_mbps=10_000)
        return unasked(
            interface("eth0", f"10.0.0.{number}/24"), interface("eth1", f"10.0.1.{number}/24", index=3), fast
        )

    snapshot = with_probes(of_nodes(node(1), node(2)), "filtered", interface="eth0")
    assert same_on_all(snapshot) == {IFNAME: "eth1"}
    assert same_on_all(with_bandwidth(snapshot, eth1=1.0, eth2=9.0)) == {IFNAME: "eth2"}


def test_a_choice_that_loses_large_messages_is_left() -> None:
    snapshot = two_networks()
    first = next(probe for probe in some(snapshot.probes) if probe.interface == "eth0")
    stalled = replace(first, kind="mtu", outcome="stalled")
    snapshot = replace(snapshot, probes=(*some(snapshot.probes), stalled))
    assert same_on_all(snapshot) == {IFNAME: "eth1"}
    assert "large messages do not arrive" in propose(snapshot)[0].why


def test_routed_networks_of_any_name_are_told_apart_by_what_was_measured() -> None:
    first = unasked(interface("a0", "10.1.0.1/31"), interface("b0", "10.2.0.1/31", index=3))
    second = unasked(interface("c0", "10.3.0.1/31"), interface("d0", "10.4.0.1/31", index=3))
    snapshot = with_bandwidth(of_nodes(first, second), a0=1.0, c0=1.0, b0=9.0, d0=9.0)
    assert same_on_all(snapshot) == {IFNAME: "b0,d0"}


# where nothing helps


def test_one_direction_of_one_pair_is_enough_to_reject_a_network() -> None:
    snapshot = with_outcome(two_networks(NCCL_SOCKET_IFNAME="lo"), "filtered", [("node02", "node04")])
    text = notes(snapshot)
    assert "No interface is mutually reachable on all nodes" in text
    assert "eth0 (node02 to node04 on eth0 (10.0.0.4): filtered)" in text
    assert "eth1 (node02 to node04 on eth1 (10.0.1.4): filtered)" in text


def test_an_untested_direction_is_no_proof() -> None:
    snapshot = two_networks(NCCL_SOCKET_IFNAME="lo")
    probes = tuple(
        probe for probe in some(snapshot.probes) if (probe.from_host, probe.to_host) != ("node02", "node04")
    )
    assert "node02 to node04 on eth0 (10.0.0.4): not tested" in notes(replace(snapshot, probes=probes))


def test_a_network_that_loses_large_messages_is_not_proposed() -> None:
    snapshot = with_probes(two_networks(), "filtered", interface="eth0")
    probes = some(snapshot.probes)
    stalled = replace(
        next(probe for probe in probes if probe.interface == "eth1"), kind="mtu", outcome="stalled"
    )
    assert "large messages do not arrive" in notes(replace(snapshot, probes=(*probes, stalled)))


def test_the_same_docker_address_everywhere_is_no_network() -> None:
    snapshot = of_nodes(*(unasked(docker0(), NCCL_SOCKET_IFNAME="docker0") for _ in range(2)))
    assert "docker0 (node01 to node02 on docker0 (172.17.0.1): self)" in notes(
        with_probes(snapshot, "self", interface="docker0")
    )


def test_what_a_config_file_forces_and_no_variable_can_undo_is_said() -> None:
    config = NcclConfigFile("/etc/nccl.conf", {"NCCL_COMM_ID": "127.0.0.1:5000"})
    snapshot = everywhere(two_networks(2), nccl=NcclChoice(NO_LIBRARY, (config,), True))
    assert "no variable makes NCCL use it" in notes(snapshot)


# Gloo
