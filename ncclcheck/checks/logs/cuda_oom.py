"""NC926 cuda-oom."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks, timeouts
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_ASKED = re.compile(
    r"(?:allocate|more than) (?:more than )?(?P<size>\d{1,15}(?:\.\d+)?) ?(?P<unit>[KMGTPEZ])i?B"
)
_OF_NCCL = re.compile(r"CUDA malloc \d{16,20} bytes")
_MOST_GIB = {"K": 1e12, "M": 1e9, "G": 1e6, "T": 1e3, "P": 0.0}


@cause(
    "NC926",
    "cuda-oom",
    "A rank ran out of GPU memory",
    explains=("rank-exception", "slow-rank-timeout", "uneven-inputs", "ib-link-or-fabric"),
    fixes=(
        Fix(
            "lower the batch or sequence length, use activation checkpointing or shard (FSDP, ZeRO); free "
            "memory before communicators are made; look for other processes on that GPU",
            (
                "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
                "ncclcheck preflight --select gpu-busy",
            ),
        ),
    ),
)
def cuda_oom(log: Log) -> Iterator[Suspect]:
    """A rank ran out of GPU memory.

    ## Why it matters
    It leaves the collective; the other ranks report a closed connection or a timeout, often more visibly and
    earlier.

    ## How to fix
    Smaller batches or sequences, activation checkpointing, sharding; look for another process on that GPU.

    ## Source
    torch c10/cuda/CUDACachingAllocator.cpp; CUDA's cudaErrorMemoryAllocation; NCCL's allocations in alloc.h.
    """
    found = [remark for remark in remarks(log, "cuda-oom") if not is_absurd(remark.text)]
    if remarks(log, "garbled-size"):  # NCCL's own words around it say no more
        found = [remark for remark in found if "Tried to allocate" in remark.text]
    late = timeouts(log)
    if (
        late
        and found
        and all(
            remark.place.line > late[0].place.line and remark.place.file == late[0].place.file
            for remark in found
        )
    ):
        found = [remark for remark in found if "Tried to allocate" in remark.text]
    if found:
        first = next((remark for remark in found if remark.place.rank is not None), found[0])
        yield suspect(
            "GPU memory is exhausted (CUDA out of memory).",
            [first, *found],
            at=found[0].place,
            hosts=culprits(log, [first.place]),
        )


def is_absurd(text: str) -> bool:
    """True for a request that no program makes: memory was corrupted by something earlier, so this is no cause."""
    if _OF_NCCL.search(text):
        return True
    match = _ASKED.search(text)
    if match is None:
        return False
    return match["unit"] in "EZ" or float(match["size"]) > _MOST_GIB[match["unit"]]
