"""NC924 nvlink-fabric-service."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC924",
    "nvlink-fabric-service",
    "The fabric manager and IMEX set up NVLink",
    topics=("fabric",),
    summary=(
        "The NVLink fabric is not set up: the fabric manager or IMEX is not running, or was restarted without a "
        "GPU reset."
    ),
    explains=("rank-exception", "driver-cuda-mismatch", "gpu-visibility"),
    fixes=(
        Fix(
            "start or restart nvidia-fabricmanager (the fabric manager of exactly the driver's version), "
            "reset the GPUs after that; with multi-node NVLink check nvidia-imex and its channels",
            (
                "systemctl status nvidia-fabricmanager nvidia-imex",
                "nvidia-smi -q | grep -A3 Fabric",
                "ncclcheck preflight --select fabric-manager",
            ),
        ),
    ),
)
def nvlink_fabric_service(log: Log) -> None:
    """The service that sets up NVLink (fabric manager, IMEX) did not run, or was restarted without a GPU reset.

    ## Why it matters
    On machines with NVSwitch CUDA does not start without it (error 802), and NVLink SHARP or multi-node NVLink
    fail.

    ## How to fix
    Start the fabric manager of the driver's own version; after it was restarted, reset the GPUs. For NVL72
    start nvidia-imex and give the job a channel.

    ## Source
    CUDA error 802 (cudaErrorSystemNotReady), NCCL transport/nvls.cc and mnnvl.cc, NVIDIA's fabric manager
    guide, section on GPU reset.
    """
