"""NC307 gdr-unavailable."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci
from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere, node, with_environment, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, answer, nccl_choice, some
from tests.hardware_builders import PEER_MEMORY, healthy_kernel, healthy_rdma, rdma_cluster, with_rdma
from tests.nccl.hardware import port

SLUG = "gdr-unavailable"
OLD_MODULE = "/sys/kernel/mm/memory_peers/nv_mem/version"


def with_kernel(snapshot: Snapshot, host: str, **changes: Any) -> Snapshot:
    return with_facts(snapshot, host, kernel=replace(some(node(snapshot, host).facts.kernel), **changes))


def without_module(nnodes: int = 2, **kernel: Any) -> Snapshot:
    snapshot = with_rdma(rdma_cluster(nnodes), "node01", peer_memory=())
    return with_kernel(snapshot, "node01", **kernel)


def test_neither_way_is_a_warning_that_gives_both_reasons() -> None:
    found = finding(SLUG, without_module(nvidia_open=False))
    assert (found.severity, found.hosts) == ("warning", ("node01",))
    assert "nvidia_peermem" in found.summary
    assert "open kernel modules" in found.summary
    assert found.fixes[0].commands[0] == "sudo modprobe nvidia_peermem"


def test_either_way_is_enough() -> None:
    assert is_silent(SLUG, without_module(nvidia_open=True))
    closed = with_kernel(rdma_cluster(2), "node01", nvidia_open=False)
    assert is_silent(SLUG, closed)
    assert is_silent(SLUG, with_rdma(closed, "node01", peer_memory=(OLD_MODULE,)))


def test_dmabuf_that_the_user_switched_off_is_no_way() -> None:
    found = finding(SLUG, with_environment(without_module(), "node01", NCCL_DMABUF_ENABLE="0"))
    assert "NCCL_DMABUF_ENABLE=0" in found.summary


@pytest.mark.parametrize(("version", "sees_it"), [("2.22.3", False), ("2.23.4", True), ("2.28.9", True)])
def test_the_module_counts_only_if_this_version_looks_for_it(version: str, sees_it: bool) -> None:
    snapshot = with_kernel(rdma_cluster(1), "node01", nvidia_open=False)
    snapshot = with_facts(snapshot, "node01", nccl=nccl_choice(answer("10.0.0.1", "eth0", version)))
    if sees_it:
        assert is_silent(SLUG, snapshot)
    else:
        assert PEER_MEMORY in finding(SLUG, snapshot).summary


def test_a_kernel_of_which_dmabuf_is_not_sure_is_unknown() -> None:
    old = run(SLUG, without_module(release="4.18.0-553.el8.x86_64"))
    assert (old.outcome, "5.12" in old.reason) == ("unknown", True)
    assert run(SLUG, without_module(release=Missing("absent", "no file"))).outcome == "unknown"


def test_what_was_not_read_is_unknown() -> None:
    closed = with_kernel(rdma_cluster(2), "node01", nvidia_open=False)
    assert run(SLUG, with_rdma(closed, "node01", peer_memory=GONE)).outcome == "unknown"
    assert run(SLUG, without_module(nvidia_open=GONE)).outcome == "unknown"
    assert run(SLUG, without(without_module(), "node01", "kernel")).outcome == "unknown"
    assert (
        run(SLUG, without(without(rdma_cluster(2), "node01", "pci"), "node01", "gpus")).outcome == "unknown"
    )


def test_a_node_that_is_not_judged_does_not_hide_that_the_others_pass() -> None:
    efa = port("rdmap_0", link_layer="Unknown", driver="efa")
    assert is_silent(SLUG, with_facts(rdma_cluster(2), "node02", rdma=healthy_rdma(efa)))


def test_nodes_without_gpus_or_without_verbs_are_not_judged() -> None:
    no_gpus = everywhere(rdma_cluster(2), gpus=(), pci=Pci(()), rdma=replace(healthy_rdma(), peer_memory=()))
    assert run(SLUG, no_gpus).outcome == "not_applicable"
    efa = port("rdmap_0", link_layer="Unknown", driver="efa")
    aws = everywhere(rdma_cluster(2), rdma=replace(healthy_rdma(efa), peer_memory=()))
    assert run(SLUG, everywhere(aws, kernel=replace(healthy_kernel(), nvidia_open=False))).outcome == (
        "not_applicable"
    )
