"""NC412 pcie-iommu."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere, node, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import software, some
from tests.hardware_builders import (
    gpu_of,
    healthy_kernel,
    healthy_rdma,
    nic_of,
    rdma_cluster,
    with_device,
    with_devices,
)
from tests.nccl.hardware import bus, gpu

SLUG = "pcie-iommu"


def translated(snapshot: Snapshot, host: str, kind: str = "DMA-FQ") -> Snapshot:
    return with_devices(snapshot, host, lambda device: replace(device, iommu=kind))


def test_translation_on_bare_metal_is_named_with_its_devices() -> None:
    found = finding(SLUG, translated(rdma_cluster(2), "node02"))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert f"GPU {gpu_of(0)}" in found.summary
    assert found.evidence[0].observed == "DMA-FQ"
    assert found.evidence[0].source == f"/sys/bus/pci/devices/{gpu_of(0)}/iommu_group/type"
    assert {evidence.source for evidence in found.evidence} >= {
        f"/sys/bus/pci/devices/{nic_of(0)}/iommu_group/type"
    }


def test_passed_through_or_off_is_fine() -> None:
    assert is_silent(SLUG, rdma_cluster(2))
    assert is_silent(SLUG, translated(rdma_cluster(2), "node02", "off"))


def test_one_translated_card_is_enough() -> None:
    found = finding(SLUG, with_device(rdma_cluster(2), "node01", nic_of(3), iommu="DMA"))
    assert f"mlx5_3 ({nic_of(3)})" in found.summary
    assert len(found.evidence) == 1


def test_a_virtual_machine_and_an_arm_machine_are_not_judged() -> None:
    snapshot = translated(rdma_cluster(1), "node01")
    virtual = everywhere(snapshot, kernel=replace(healthy_kernel(), virtual_machine=True))
    result = run(SLUG, virtual)
    assert (result.outcome, result.reason) == ("not_applicable", "node01 is a virtual machine")
    arm = everywhere(snapshot, software=software(machine="aarch64"))
    assert run(SLUG, arm).outcome == "not_applicable"


def test_a_node_with_a_single_gpu_and_no_nic_is_not_judged() -> None:
    alone = everywhere(
        rdma_cluster(1), pci=bus(gpu(gpu_of(0), iommu="DMA")), rdma=healthy_rdma().__class__((), (), ())
    )
    assert run(SLUG, alone).outcome == "not_applicable"


def test_what_is_not_told_is_unknown() -> None:
    old = with_device(rdma_cluster(2), "node02", gpu_of(0), iommu=Missing("absent", "no type"))
    result = run(SLUG, old)
    assert (result.outcome, result.reason) == (
        "unknown",
        f"node02: IOMMU of GPU {gpu_of(0)}: absent: no type",
    )
    kernel = replace(
        some(node(rdma_cluster(2), "node02").facts.kernel), virtual_machine=Missing("denied", "no")
    )
    assert run(SLUG, with_facts(rdma_cluster(2), "node02", kernel=kernel)).outcome == "unknown"
