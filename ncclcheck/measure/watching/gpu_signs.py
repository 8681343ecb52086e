"""Do the GPUs of a job compute? Pure.

That a kernel runs proves nothing: one of NCCL that waits for another rank runs, too, and NVML then calls the GPU 100 %
busy. It hardly uses the GPU's memory and takes little power (github.com/NVIDIA/nccl/issues/968: 100 % and 70 W).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ncclcheck.model.job.watched import GpuLoad

_LEAST_MEMORY_PERCENT = 20
_LEAST_OF_POWER = 0.5  # of the limit


def gpus_compute(loads: Sequence[GpuLoad], job_pids: Collection[int], visible: Collection[int]) -> bool:
    """Return whether a GPU of the job computes.

    `job_pids`: the processes of the job. `visible`: the processes listed by NVML that this namespace can see. In a
    container with its own PID namespace NVML returns PIDs of the host, or none: then all GPUs there are the job's.
    """
    known = [load for load in loads if set(load.pids or ()) & set(job_pids)]
    job = known or [load for load in loads if not set(load.pids or ()) & set(visible)]
    return any(_works(load) for load in job)


def _works(load: GpuLoad) -> bool:
    if load.memory_percent is not None and load.memory_percent >= _LEAST_MEMORY_PERCENT:
        return True
    if not load.power_mw or not load.power_limit_mw:
        return False
    return load.power_mw >= _LEAST_OF_POWER * load.power_limit_mw
