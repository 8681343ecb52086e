"""NC918 unsupported-gpu-arch."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC918",
    "unsupported-gpu-arch",
    "The build does not support these GPUs",
    topics=("no-kernel-image",),
    summary="The installed build has no kernels for this GPU.",
    explains=("rank-exception",),
    fixes=(
        Fix(
            "install a newer PyTorch build (or extension) compiled for the sm_ architecture of this GPU",
            (
                "python -c 'import torch; print(torch.cuda.get_arch_list(), torch.cuda.get_device_capability())'",
            ),
        ),
    ),
)
def unsupported_gpu_arch(log: Log) -> None:
    """The build of torch or of an extension has no machine code for this kind of GPU.

    ## Why it matters
    The first kernel fails on every rank with such a GPU.

    ## How to fix
    Install a build that lists the sm_ number of the GPU, or build the extension for it.

    ## Source
    CUDA's cudaErrorNoKernelImageForDevice; torch/cuda/__init__.py (_check_capability).
    """
