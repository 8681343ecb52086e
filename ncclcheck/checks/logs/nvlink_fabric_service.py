"""NC924 nvlink-fabric-service."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_NOT_READY = re.compile(r"\b802\b|not yet initialized|SYSTEM_NOT_READY")
_IMPORT = re.compile(r"(?:transport/p2p|\bp2p\.cc).{0,80}Cu(?:da|DA) failure")


@cause(
    "NC924",
    "nvlink-fabric-service",
    "The fabric manager or IMEX did not set up NVLink",
    explains=("rank-exception", "driver-cuda-mismatch", "gpu-visibility", "p2p-broken"),
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
def nvlink_fabric_service(log: Log) -> Iterator[Suspect]:
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
    found, absent = remarks(log, "fabric"), remarks(log, "fabric-node")
    if remarks(log, "no-nvswitch"):  # the service is installed where it has nothing to do, and ends
        found = tuple(remark for remark in found if _NOT_READY.search(remark.text))
    if found:
        yield suspect(
            "The NVLink fabric is not set up: the fabric manager or IMEX is not running, or was restarted without a "
            "GPU reset.",
            [*found, *absent],
            hosts=tuple(dict.fromkeys(remark.values["node"] for remark in absent))
            or culprits(log, [remark.place for remark in found]),
        )
        return
    imports = [remark for remark in remarks(log, "nccl-warn") if _IMPORT.search(remark.text)]
    if imports and any("MNNVL" in link.via for process in log.processes for link in process.links):
        yield suspect(
            "NCCL could not open the memory of a GPU of another node over multi-node NVLink.",
            imports,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in imports[:1]]),
        )
