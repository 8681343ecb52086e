"""NC918 unsupported-gpu-arch."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_FIXES = (
    Fix(
        "install a newer PyTorch build (or extension) compiled for the sm_ architecture of this GPU",
        ("python -c 'import torch; print(torch.cuda.get_arch_list(), torch.cuda.get_device_capability())'",),
    ),
)


@cause("NC918", "unsupported-gpu-arch", "The build has kernels for these GPUs")
def unsupported_gpu_arch(log: Log) -> Iterator[Suspect]:
    """The build of torch or of an extension has no machine code for this kind of GPU.

    ## Why it matters
    The first kernel fails on every rank with such a GPU, whatever the network does.

    ## How to fix
    Install a build that lists the sm_ number of the GPU, or build the extension for it.

    ## Source
    CUDA's cudaErrorNoKernelImageForDevice; torch/cuda/__init__.py (_check_capability).
    """
    found = remarks(log, "no-kernel-image")
    if found:
        yield suspect(
            "The installed build has no kernels for this GPU.",
            found,
            hosts=culprits(log, [remark.place for remark in found]),
            explains=("rank-exception",),
            fixes=_FIXES,
        )
