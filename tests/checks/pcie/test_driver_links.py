"""Machines whose /sys has no entries for the GPUs: some virtual machines and containers."""

from __future__ import annotations

import pytest

from ncclcheck.checks.rdma_ports import has_gpus
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci, Rdma
from ncclcheck.model.snapshot import Snapshot
from tests.builders import everywhere
from tests.checks.running import finding, run
from tests.gpu_builders import with_gpu
from tests.hardware_builders import rdma_cluster
from tests.nccl.hardware import UNREAD

SLUG = "pcie-degraded"


def virtual(nnodes: int = 2) -> Snapshot:
    return everywhere(rdma_cluster(nnodes), pci=Pci(()), rdma=Rdma((), (), ()))


def test_without_entries_in_sys_the_driver_tells_the_links_of_its_gpus() -> None:
    assert run(SLUG, virtual()).outcome == "passed"
    found = finding(SLUG, with_gpu(virtual(), "node02", 3, pcie_width=8))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "runs at x8 where its path allows x16" in found.summary
    assert found.evidence[0].source.startswith("NVML")
    assert "/sys" not in str(found.fixes)


def test_an_idle_gpu_that_only_the_driver_knows_is_mentioned() -> None:
    found = finding(SLUG, with_gpu(virtual(), "node02", 3, pcie_generation=1))
    assert found.severity == "info"
    assert "2.5 GT/s now and could run at 32 GT/s" in found.summary
    assert found.evidence[0].source.startswith("NVML")


def test_a_gpu_whose_link_nobody_tells_is_unknown() -> None:
    assert run(SLUG, with_gpu(virtual(), "node02", 3, pcie_width=UNREAD)).outcome == "unknown"
    assert run(SLUG, with_gpu(virtual(), "node02", 3, pci=UNREAD)).outcome == "unknown"


@pytest.mark.parametrize("slug", [SLUG, "pcie-iommu", "pcie-acs"])
def test_gpus_that_were_not_read_are_unknown_and_not_not_applicable(slug: str) -> None:
    late = everywhere(virtual(), gpus=Missing("timeout", "NVML: nvmlInit did not answer within 5 s"))
    assert run(slug, late).outcome == "unknown"
    assert has_gpus(late.nodes[0].facts) is None
