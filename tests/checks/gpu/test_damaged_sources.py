"""Every value of a GPU, damaged in turn: no check passes that judged it, and none crashes."""

from __future__ import annotations

import pytest

from ncclcheck.checks.registry import all_checks, run_check
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import GpuState
from tests.builders import cluster
from tests.gpu_builders import with_gpu

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
    "fabric": {"fabric-manager"},
    "peers": {"gpu-peers"},
}
GPU_CHECKS = [
    check for check in all_checks() if ".gpu." in check.body.__module__ or check.slug == "arch-not-built"
]


@pytest.mark.parametrize("why", ["absent", "denied", "timeout", "error"])
@pytest.mark.parametrize("field", GpuState.__struct_fields__)
def test_a_damaged_value_makes_the_checks_that_judge_it_unknown_and_no_other(field: str, why: str) -> None:
    damaged = with_gpu(cluster(2), "node02", 4, **{field: Missing(why, "damaged")})  # type: ignore[arg-type]
    outcomes = {check.slug: run_check(check, damaged).outcome for check in GPU_CHECKS}
    assert {slug for slug, outcome in outcomes.items() if outcome == "unknown"} == JUDGED_BY.get(field, set())
    assert set(outcomes.values()) <= {"unknown", "passed"}
