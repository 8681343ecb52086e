"""Do the GPUs of a job compute? By what NVML tells of them."""

from __future__ import annotations

import pytest

from ncclcheck.measure.watching.gpu_signs import gpus_compute
from ncclcheck.model.job.watched import GpuLoad

COMPUTES = GpuLoad(55, 610_000, 700_000, (7,))
WAITS_IN_NCCL = GpuLoad(0, 120_000, 700_000, (7,))


@pytest.mark.parametrize(
    ("load", "works"),
    [
        (COMPUTES, True),
        (WAITS_IN_NCCL, False),
        (GpuLoad(3, 420_000, 700_000, (7,)), True),  # small matrices that stay in the caches
        (GpuLoad(35, None, None, (7,)), True),
        (GpuLoad(), False),  # NVML tells nothing
    ],
)
def test_memory_or_power_tells_work_from_a_kernel_that_waits(load: GpuLoad, works: bool) -> None:
    assert gpus_compute([WAITS_IN_NCCL, load], {7}, {7}) is works


def test_the_gpu_of_another_job_of_this_node_is_no_sign() -> None:
    assert not gpus_compute([COMPUTES], {8}, {7})
    assert gpus_compute([COMPUTES, GpuLoad(55, pids=(8,))], {8}, {7, 8})


@pytest.mark.parametrize("pids", [(4711,), (), None])
def test_in_a_container_whose_processes_nvml_does_not_know_its_gpus_are_the_jobs(
    pids: tuple[int, ...] | None,
) -> None:
    assert gpus_compute([GpuLoad(55, pids=pids)], {8}, ())


def test_a_gpu_of_somebody_whose_processes_are_hidden_is_not_the_jobs_where_its_own_are_known() -> None:
    assert not gpus_compute([GpuLoad(1, pids=(8,)), GpuLoad(90, pids=(9,))], {8}, {8})
