"""NC920 gpu-visibility."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_FIXES = (
    Fix(
        "call torch.cuda.set_device(LOCAL_RANK), not the global rank; check CUDA_VISIBLE_DEVICES and "
        "--gpus-per-task / --nproc-per-node",
        (
            "echo $CUDA_VISIBLE_DEVICES; nvidia-smi -L",
            "ncclcheck preflight --select gpu-count",
        ),
    ),
)


@cause("NC920", "gpu-visibility", "Every rank has the device that its local rank names")
def gpu_visibility(log: Log) -> Iterator[Suspect]:
    """A rank asked for a GPU that it does not see: device index, local rank or visibility are wrong.

    ## Why it matters
    That rank ends; the others wait for it until their time is over.

    ## How to fix
    Use LOCAL_RANK (not RANK) as device index, and start as many processes per node as there are visible GPUs.

    ## Source
    CUDA's cudaErrorInvalidDevice and cudaErrorNoDevice, torch/cuda/__init__.py.
    """
    found = remarks(log, "device-ordinal")
    if found:
        yield suspect(
            "A rank uses a GPU that is not there for it (invalid device ordinal, or no device at all).",
            found,
            hosts=culprits(log, [remark.place for remark in found]),
            explains=("rank-exception", "world-size-mismatch"),
            fixes=_FIXES,
        )
