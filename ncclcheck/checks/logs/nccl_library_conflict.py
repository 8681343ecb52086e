"""NC916 nccl-library-conflict."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC916",
    "nccl-library-conflict",
    "The wrong libnccl was loaded",
    topics=("nccl-symbol",),
    summary="The process loaded a libnccl that lacks what the program needs, or cannot be loaded at all.",
    unless="(?i)libnccl-net|plugin",
    explains=("python-env", "rank-exception", "data-or-file-missing"),
    fixes=(
        Fix(
            "unset LD_LIBRARY_PATH (or take the system NCCL out of it) so that the nvidia-nccl wheel of this "
            "torch is loaded, or reinstall it; see which file is taken",
            (
                "python -c 'import torch; print(torch.cuda.nccl.version())'",
                "pip list | grep -i nccl",
                "ncclcheck preflight --select library-conflict",
            ),
        ),
    ),
)
def nccl_library_conflict(log: Log) -> None:
    """A wrong libnccl was loaded: a symbol that the program needs is not in it, or it cannot be loaded at all.

    ## Why it matters
    The process ends at import, or runs with another NCCL than its peers.

    ## How to fix
    Find which file is loaded and why: LD_LIBRARY_PATH with a system NCCL before the one of the wheel, two
    wheels for different CUDA generations, LD_PRELOAD.

    ## Source
    glibc's loader messages; torch imports libtorch_cuda.so, which needs the symbols of the NCCL it was built
    with.
    """
