"""NC609 network-unusable."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Rdma
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_environment, with_facts
from tests.checks.running import finding, is_silent, run
from tests.hardware_builders import rdma_cluster

SLUG = "network-unusable"


def without_devices(**variables: str) -> Snapshot:
    """Two nodes without RDMA and these variables on both."""
    snapshot = everywhere(cluster(2), rdma=Rdma((), device_files=(), peer_memory=()))
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, **variables)
    return snapshot


def test_without_the_variable_nccl_takes_what_is_there() -> None:
    assert is_silent(SLUG, without_devices())


def test_infiniband_without_a_device_fails_the_job() -> None:
    found = finding(SLUG, without_devices(NCCL_NET="IB"))
    assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert "no network of this name can be used (the node has no RDMA device)" in found.summary
    assert found.summary.count("NCCL_NET=IB") == 1
    assert found.fixes[0].commands == ("unset NCCL_NET",)


def test_a_network_that_nobody_offers_fails_the_job() -> None:
    assert "NCCL_NET=Fabric" in finding(SLUG, without_devices(NCCL_NET="Fabric")).summary


def test_what_is_there_passes() -> None:
    assert is_silent(SLUG, without_devices(NCCL_NET="Socket"))
    snapshot = rdma_cluster(2)
    for node in snapshot.nodes:
        snapshot = with_environment(snapshot, node.host, NCCL_NET="IB")
    assert is_silent(SLUG, snapshot)


def test_one_cause_is_told_once() -> None:
    assert not run(SLUG, without_devices(NCCL_NET="IB", NCCL_IB_DISABLE="1")).findings
    assert not run(SLUG, without_devices(NCCL_NET="Fabric", NCCL_NET_PLUGIN="fabric")).findings


def test_without_rdma_facts_nothing_is_known() -> None:
    snapshot = with_facts(without_devices(NCCL_NET="IB"), "node02", rdma=Missing("denied", "no"))
    assert run(SLUG, snapshot).outcome in ("unknown", "found")
    assert "node02" in run(SLUG, snapshot).reason
