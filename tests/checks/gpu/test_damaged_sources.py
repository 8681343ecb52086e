"""Every value of a GPU, damaged in turn: no check passes that judged it, and none crashes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import Fabric, GpuState
from tests.builders import cluster, with_facts
from tests.fact_builders import some
from tests.gpu_builders import with_all_gpus, with_gpu

JUDGED_BY = {
    "memory_used_bytes": {"gpu-busy"},
    "processes": {"gpu-busy"},
    "ecc": {"gpu-differs"},
    "ecc_uncorrected_volatile": {"gpu-ecc"},
    "remap_pending": {"gpu-ecc"},
    "remap_failed": {"gpu-ecc"},
    "recovery_action": {"gpu-unusable"},
    "slowdowns": {"gpu-slowed"},
    "mig": {"gpu-differs"},
    "persistence": {"gpu-differs"},
    "compute_capability": {"arch-not-built"},
    "nvlinks": {"nvlink-down"},
    "compute_mode": {"gpu-differs"},
    "fabric": {"fabric-manager", "nvlink-domain"},
    "peers": {"gpu-peers"},
}
# Nodes that NVLink connects, so that every check about GPUs applies.
HEALTHY = with_all_gpus(cluster(2), fabric=Fabric("completed", 0, "healthy", False, "a.1"))
for _node in HEALTHY.nodes:
    _driver = replace(some(_node.facts.gpu_driver), imex_channels=(0,))
    HEALTHY = with_facts(HEALTHY, _node.host, gpu_driver=_driver)
GPU_CHECKS = [
    check for check in all_checks() if ".gpu." in check.body.__module__ or check.slug == "arch-not-built"
]


@pytest.mark.parametrize("why", ["absent", "denied", "timeout", "error"])
@pytest.mark.parametrize("field", GpuState.__struct_fields__)
def test_a_damaged_value_makes_the_checks_that_judge_it_unknown_and_no_other(field: str, why: str) -> None:
    damaged = with_gpu(HEALTHY, "node02", 4, **{field: Missing(why, "damaged")})  # type: ignore[arg-type]
    outcomes = {check.slug: run_check(check, damaged).outcome for check in GPU_CHECKS}
    assert {slug for slug, outcome in outcomes.items() if outcome == "unknown"} == JUDGED_BY.get(field, set())
    assert set(outcomes.values()) <= {"unknown", "passed"}
