"""Settings stand in the advice with their proof; what the library contradicts does not."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.advice.block import advise
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import asked, two_networks, with_probes
from tests.builders import cluster, seen_alone, with_choice, with_environment, with_facts
from tests.fact_builders import some


def all_on_lo() -> Snapshot:
    """Four nodes with libnccl, which ^docker0 has led to lo."""
    snapshot = cluster()
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, NCCL_SOCKET_IFNAME="^docker0")
        snapshot = with_choice(snapshot, node.host, "lo", "127.0.0.1")
    return snapshot


def test_a_healthy_cluster_gets_no_setting_and_a_note_for_each_library() -> None:
    advice = advise(cluster())
    assert advice.env == ()
    assert len(advice.notes) == 2


def test_a_setting_that_every_library_confirmed_is_proven_by_asking() -> None:
    (setting,) = advise(asked(all_on_lo())).env
    assert (setting.name, setting.value, setting.hosts, setting.proof) == (
        "NCCL_SOCKET_IFNAME",
        None,
        (),
        "asked",
    )
    assert "all 12 connections between the 4 nodes on eth0 succeeded" in setting.evidence
    assert "NCCL 2.27.5, asked with it on 4 nodes, chose eth0" in setting.evidence
    assert "NCCL would bind lo (127.0.0.1) on node01, node02, node03, node04" in setting.why


def test_a_setting_that_a_library_contradicts_is_withheld() -> None:
    advice = advise(asked(all_on_lo(), {"node03": ("lo", "127.0.0.1")}))
    assert advice.env == ()
    assert any("of node03, asked with it, chose lo instead of eth0" in note for note in advice.notes)


def test_a_setting_that_was_not_asked_although_it_could_be_is_withheld() -> None:
    snapshot = asked(all_on_lo())
    advice = advise(replace(snapshot, confirmations=snapshot.confirmations[:3]))
    assert advice.env == ()
    assert any(
        "unsetting NCCL_SOCKET_IFNAME was withheld: NCCL of node04 could not be asked" in note
        for note in advice.notes
    )


def test_a_confirmation_of_something_else_does_not_count() -> None:
    snapshot = asked(all_on_lo())
    others = tuple(
        replace(confirmation, env={"NCCL_SOCKET_IFNAME": "eth0"}) for confirmation in snapshot.confirmations
    )
    assert advise(replace(snapshot, confirmations=others)).env == ()


def test_without_any_library_the_model_is_named_as_the_only_source() -> None:
    (setting,) = advise(two_networks(NCCL_SOCKET_IFNAME="^docker0")).env
    assert setting.proof == "rule"
    assert "have no libnccl" in setting.evidence
    assert "our model's prediction" in setting.evidence


def test_one_node_without_a_library_makes_the_whole_setting_a_rule() -> None:
    snapshot = all_on_lo()
    nccl = replace(some(snapshot.nodes[1].facts.nccl), asked=Missing("absent", "no libnccl.so.2"))
    snapshot = asked(with_facts(snapshot, "node02", nccl=nccl))
    kept = tuple(confirmation for confirmation in snapshot.confirmations if confirmation.host != "node02")
    (setting,) = advise(replace(snapshot, confirmations=kept)).env
    assert setting.proof == "rule"
    assert "asked with it on 3 nodes" in setting.evidence
    assert "not asked on node02" in setting.evidence


def test_gloo_is_advised_by_its_rule_with_the_probes_as_evidence() -> None:
    settings = advise(two_networks(GLOO_SOCKET_IFNAME="eth")).env
    (setting,) = settings
    assert (setting.name, setting.value, setting.hosts, setting.proof) == (
        "GLOO_SOCKET_IFNAME",
        "eth0",
        (),
        "rule",
    )
    assert "all 12 connections between the 4 nodes on eth0 succeeded" in setting.evidence
    assert "exact names" in setting.evidence


def test_values_that_differ_name_their_hosts() -> None:
    snapshot = with_probes(two_networks(2, GLOO_SOCKET_IFNAME="eth"), "ok")
    first = snapshot.nodes[0]
    interfaces = tuple(
        replace(
            interface,
            name=f"x{interface.name}",
            addresses=tuple(replace(a, label=f"x{a.label}") for a in interface.addresses),
        )
        if interface.name != "lo"
        else interface
        for interface in some(first.facts.interfaces)
    )
    settings = advise(with_facts(snapshot, first.host, interfaces=interfaces)).env
    assert [(setting.value, setting.hosts) for setting in settings] == [
        ("xeth0", ("node01",)),
        ("eth0", ("node02",)),
    ]


def test_a_node_of_many_that_met_nobody_is_not_said_to_be_the_only_one() -> None:
    (note,) = advise(seen_alone(cluster(4), "node02")).notes
    assert "the nodes did not meet" in note
    assert advise(cluster(1)).notes == ("one node: there is no network between nodes to advise on",)
