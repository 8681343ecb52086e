"""A comparison proves the settings it was made with, or rules them out; it says nothing of what it did not use."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.advice.block import advise
from ncclcheck.advice.compared import as_is_and_advised
from ncclcheck.model.bench import Comparison, Variant
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Advice
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import of_nodes, two_networks, unasked, with_bandwidth, with_probes, with_rdma
from tests.builders import everywhere
from tests.fact_builders import interface, some
from tests.nccl.hardware import port


def slow() -> Snapshot:
    """Two nodes whose choice is slow, with GPUs, so that Gloo's stays as it is."""
    return with_bandwidth(two_networks(2), eth0=1.0, eth1=9.0)


def compared(snapshot: Snapshot, verdict: str, **changes: Any) -> Advice:
    """The advice after what it would be without was compared, with this verdict."""
    two = some(as_is_and_advised(snapshot))
    comparison = Comparison(
        backend="gloo",
        op="all_reduce",
        size_bytes=1 << 24,
        world_size=2,
        rounds=10,
        as_is=Variant(
            {}, two.as_is, failure="rank 0 of node01 hung" if verdict.startswith(("as", "bo")) else ""
        ),
        advised=Variant(
            two.changes, two.advised, failure="rank 1 of node02 hung" if verdict[:2] in {"ad", "bo"} else ""
        ),
        verdict=verdict,  # type: ignore[arg-type]
    )
    if verdict == "faster":
        comparison = replace(comparison, speedup=2.4, speedup_low=2.3, speedup_high=2.5)
    elif verdict == "slower":
        comparison = replace(comparison, speedup=0.5, speedup_low=0.4, speedup_high=0.8)
    elif verdict == "no effect":
        comparison = replace(comparison, speedup=1.01, speedup_low=0.98, speedup_high=1.03)
    return advise(replace(snapshot, comparison=replace(comparison, **changes)))


def proofs(advice: Advice) -> dict[str, str]:
    return {setting.name: setting.proof for setting in advice.env}


def test_a_measured_effect_is_the_proof_with_its_interval_and_the_rest_of_the_evidence() -> None:
    (setting,) = compared(slow(), "faster").env
    assert (setting.value, setting.proof) == ("eth1", "measured")
    assert setting.evidence.startswith(
        "2.40 times faster, 95 % interval 2.30 to 2.50, all_reduce 16M, 2 ranks, gloo, 10 rounds; all 2 connections"
    )


def test_what_works_only_with_the_settings_is_measured_too() -> None:
    snapshot = with_probes(two_networks(2), "filtered", interface="eth0")
    setting, of_gloo = compared(snapshot, "as-is failed").env  # its host name leads Gloo to eth0 too
    assert (setting.proof, of_gloo.proof) == ("measured", "measured")
    assert setting.evidence.startswith(
        "as-is failed: rank 0 of node01 hung; with it the same collective succeeded"
    )


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("no effect", "no effect: 1.01 times the speed, 95 % interval 0.98 to 1.03"),
        ("slower", "2.00 times slower, 95 % interval 1.25 to 2.50"),
        ("advised failed", "the collective failed with it and not without it: rank 1 of node02 hung"),
    ],
)
def test_what_does_not_help_is_withheld_and_said(verdict: str, words: str) -> None:
    advice = compared(slow(), verdict)
    assert advice.env == ()
    assert f"NCCL_SOCKET_IFNAME=eth1 was withheld: {words}" in advice.notes[-1]


@pytest.mark.parametrize("verdict", ["no effect", "slower"])
def test_a_repair_stays_where_gloo_got_along_with_one_direction_and_goes_where_nccl_itself_did(
    verdict: str,
) -> None:
    snapshot = everywhere(with_probes(two_networks(2), "filtered", interface="eth0"), names=Missing("error"))
    assert proofs(advise(snapshot)) == {"NCCL_SOCKET_IFNAME": "rule"}
    advice = compared(snapshot, verdict)
    assert proofs(advice) == {"NCCL_SOCKET_IFNAME": "rule"}
    assert (
        "NCCL_SOCKET_IFNAME=eth1 stays advised, though Gloo's collective went without it ("
        in advice.notes[-1]
    )
    assert (
        "only one connects to the other in Gloo, and in NCCL both do, of which one fails" in advice.notes[-1]
    )
    assert compared(snapshot, verdict, backend="nccl").env == ()
    assert compared(snapshot, "advised failed").env == ()


def test_a_slow_way_to_one_node_stays_a_reason_where_gloo_went_the_other_way() -> None:
    """Node02's own eth0 is slow, and node01 is on the fast eth1 already."""
    first = unasked(interface("eth1", "10.0.1.1/24"), interface("eth0", "10.0.0.1/24", index=3))
    second = unasked(interface("eth0", "10.0.0.2/24"), interface("eth1", "10.0.1.2/24", index=3))
    uneven = with_bandwidth(of_nodes(first, second), eth0=1.0, eth1=9.0)
    advice = compared(everywhere(uneven, names=Missing("timeout")), "no effect")
    assert proofs(advice) == {"NCCL_SOCKET_IFNAME": "rule"}
    assert advice.notes[-1].endswith("in NCCL both do, of which one has the slow way")
    assert compared(slow(), "no effect").env == ()


def test_a_failure_of_both_takes_nothing_from_what_was_known() -> None:
    advice = compared(slow(), "both failed")
    assert proofs(advice) == {"NCCL_SOCKET_IFNAME": "rule"}
    assert "could not be measured: the collective failed with it too" in advice.notes[-1]
    assert proofs(compared(slow(), "not measured")) == {"NCCL_SOCKET_IFNAME": "rule"}


def test_another_set_of_settings_proves_nothing() -> None:
    other = Variant({"node01": {"NCCL_SOCKET_IFNAME": "eth2"}}, {})
    advice = compared(slow(), "faster", advised=other)
    assert proofs(advice) == {"NCCL_SOCKET_IFNAME": "rule"}
    assert "made with other settings" in advice.notes[-1]


def test_gloo_says_nothing_of_rdma_and_nccl_says_it_of_all() -> None:
    snapshot = with_rdma(2, port(), NCCL_IB_DISABLE="1", NCCL_SOCKET_IFNAME="lo")
    assert proofs(compared(snapshot, "faster")) == {
        "NCCL_SOCKET_IFNAME": "measured",
        "NCCL_IB_DISABLE": "rule",
    }
    both = compared(snapshot, "faster", backend="nccl")
    assert set(proofs(both).values()) == {"measured"}
    assert all("(all settings together)" in setting.evidence for setting in both.env)
    assert proofs(compared(snapshot, "advised failed")) == {"NCCL_IB_DISABLE": "rule"}


def test_gloos_own_setting_is_measured_where_it_leads_from_the_one_to_the_other() -> None:
    snapshot = everywhere(slow(), gpus=())
    assert proofs(compared(snapshot, "faster")) == {
        "NCCL_SOCKET_IFNAME": "measured",
        "GLOO_SOCKET_IFNAME": "measured",
    }
    assert compared(snapshot, "no effect").env == ()
    alone = two_networks(2, GLOO_SOCKET_IFNAME="lo")
    assert proofs(compared(alone, "as-is failed")) == {"GLOO_SOCKET_IFNAME": "measured"}
    elsewhere = everywhere(slow(), gpus=(), environment={"GLOO_SOCKET_IFNAME": "lo"})
    assert proofs(compared(elsewhere, "faster"))["GLOO_SOCKET_IFNAME"] == "rule"
