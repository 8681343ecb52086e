"""NC917 driver-cuda-mismatch."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC917",
    "driver-cuda-mismatch",
    "The GPU driver does not support the program's CUDA version",
    topics=("driver-too-old",),
    summary="The GPU driver does not support the CUDA version that the program was built with.",
    explains=("rank-exception", "gpu-visibility", "world-size-mismatch"),
    fixes=(
        Fix(
            "upgrade the NVIDIA driver on the node, or install a torch build for the CUDA version that its "
            "driver supports",
            (
                "nvidia-smi",
                "ncclcheck preflight --select version-differs",
            ),
        ),
    ),
)
def driver_cuda_mismatch(log: Log) -> None:
    """The NVIDIA driver is too old for the CUDA version of the program, or does not match it.

    ## Why it matters
    No GPU can be used on that node; its ranks end at their first CUDA call and the others wait for them.

    ## How to fix
    Update the driver on that node, or use a build for its CUDA version; after an update of the driver restart
    what still uses the old module.

    ## Source
    CUDA's error strings (cudaErrorInsufficientDriver, 803, 804), torch/cuda/__init__.py, NVML's library
    mismatch.
    """
