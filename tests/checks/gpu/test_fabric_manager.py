"""NC407 fabric-manager."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import Fabric, GpuWork
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE
from tests.gpu_builders import with_all_gpus, with_gpu

UNTOLD = Missing("unsupported", "this driver does not tell it")
NOT_TRIED = Missing("unsupported", "this torch was built without CUDA")


def test_a_completed_fabric_is_silent() -> None:
    assert is_silent("fabric-manager", cluster(4))
    assert is_silent(
        "fabric-manager", with_all_gpus(cluster(2), fabric=Fabric("completed", 0, UNTOLD, UNTOLD))
    )


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        (Fabric("not-started", 0), "registration is not started"),
        (Fabric("in-progress", 0), "registration is in progress"),
        (Fabric("completed", 999), "registration ended with NVML error 999"),
        (Fabric("completed", 0, "unhealthy"), "unhealthy"),
        (Fabric("completed", 0, "limited-capacity"), "limited capacity"),
    ],
)
def test_a_gpu_that_did_not_join_is_named(fabric: Fabric, words: str) -> None:
    snapshot = with_facts(with_gpu(cluster(4), "node02", 5, fabric=fabric), "node02", gpu_work=NOT_TRIED)
    found = finding("fabric-manager", snapshot)
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert f"GPU 5 (0000:05:00.0): {words}" in found.summary


def test_a_gpu_that_computes_in_spite_of_it_is_a_warning() -> None:
    assert (
        finding("fabric-manager", with_gpu(cluster(4), "node02", 5, fabric=Fabric("not-started", 0))).severity
        == "warning"
    )


def test_a_degraded_bandwidth_is_a_warning() -> None:
    degraded = Fabric("completed", 0, "healthy", True)
    assert finding("fabric-manager", with_gpu(cluster(4), "node02", 5, fabric=degraded)).severity == "warning"


def test_cuda_that_waits_for_the_fabric_tells_where_the_driver_does_not() -> None:
    words = "RuntimeError: CUDA error: system not yet initialized"
    snapshot = with_all_gpus(cluster(2), fabric=UNTOLD)
    found = finding(
        "fabric-manager", with_facts(snapshot, "node01", gpu_work=(GpuWork(0, "failed", GONE, 1.0, words),))
    )
    assert (found.severity, found.hosts) == ("error", ("node01",))


def test_what_was_not_read_is_unknown_and_machines_without_a_fabric_are_not_judged() -> None:
    assert run("fabric-manager", with_gpu(cluster(4), "node02", 5, fabric=GONE)).outcome == "unknown"
    assert (
        run("fabric-manager", with_all_gpus(cluster(2), fabric=Fabric("not-supported", 0))).outcome
        == "not_applicable"
    )
