"""NC920 gpu-visibility."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC920",
    "gpu-visibility",
    "A rank does not see the GPU of its local rank",
    topics=("device-ordinal",),
    unless=r"transport/p2p|\bp2p\.c[cu]\b",  # there NCCL opens the memory of another process
    summary="A rank asks for a GPU that it cannot see (invalid device ordinal, or no device at all).",
    explains=("rank-exception", "world-size-mismatch"),
    fixes=(
        Fix(
            "call torch.cuda.set_device(LOCAL_RANK), not the global rank; check CUDA_VISIBLE_DEVICES and "
            "--gpus-per-task / --nproc-per-node",
            (
                "echo $CUDA_VISIBLE_DEVICES; nvidia-smi -L",
                "ncclcheck preflight --select gpu-count",
            ),
        ),
    ),
)
def gpu_visibility(log: Log) -> None:
    """A rank asked for a GPU that it does not see: device index, local rank or visibility are wrong.

    ## Why it matters
    That rank ends; the others wait for it until they time out.

    ## How to fix
    Use LOCAL_RANK (not RANK) as device index, and start as many processes per node as there are visible GPUs.

    ## Source
    CUDA's cudaErrorInvalidDevice and cudaErrorNoDevice, torch/cuda/__init__.py.
    """
