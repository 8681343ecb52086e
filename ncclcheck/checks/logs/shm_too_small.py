"""NC922 shm-too-small."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_CUDA = re.compile(r"shm\w*\.(?:cc|h):\d{1,6} NCCL WARN Cuda failure '?(?!out of memory)")

_GONE = re.compile(
    r"(?:(?:attaching to|failed to open) shared memory .{1,200}|"
    r"shm\w*\.(?:cc|h):\d{1,6} NCCL WARN Call to (?:shm_)?open failed ?: )"
    r"No such file or directory",
    re.IGNORECASE,
)

_OTHER_RANKS = Fix(
    "read the logs of the other ranks of this node: which of them ended first? If they run in several containers, "
    "start these with one /dev/shm (docker run --ipc=host or --ipc=container:NAME)"
)


@cause(
    "NC922",
    "shm-too-small",
    "/dev/shm is too small",
    explains=("rank-exception", "host-oom-kill", "data-or-file-missing"),
    judges=True,
    fixes=(
        Fix(
            "give the container more shared memory: docker run --shm-size=16g (or --ipc=host); in Kubernetes "
            "mount an emptyDir with medium: Memory at /dev/shm",
            (
                "df -h /dev/shm",
                "ncclcheck preflight --select shm-small",
            ),
        ),
    ),
)
def shm_too_small(log: Log) -> Iterator[Suspect]:
    """/dev/shm was too small for the segments that NCCL or data loaders share between the processes of a node.

    ## Why it matters
    A container has 64 MiB of it by default; NCCL needs some 9 MiB per pair of ranks and data loaders
    more.

    ## How to fix
    Start the container with a larger /dev/shm, or share the host's.

    ## Source
    NCCL misc/shmutils.cc; torch/utils/data/_utils/signal_handling.py; docker's default of 64 MiB.
    """
    found = remarks(log, "shm")
    traced = remarks(log, "shm-trace")
    if traced and not found and not any(remark.values.get("cause") for remark in remarks(log, "nccl-warn")):
        yield suspect(
            "A call of the system failed where NCCL makes a shared-memory segment (transport/shm.cc): /dev/shm is too "
            "small, or not shared.",
            traced,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in traced[:1]]),
        )
    if found and _CUDA.search(" ".join(remark.text for remark in remarks(log, "nccl-warn"))):
        # The segment was made, and CUDA rejected it: another call than the ones that run out of room.
        yield suspect(
            "CUDA did not take a shared-memory segment; its size is hardly the reason.",
            found,
            confidence="possible",
            hosts=culprits(log, [remark.place for remark in found]),
            explains=(),
        )
    elif found and all(_GONE.search(remark.text) for remark in found):
        # Its maker has removed it, or made it elsewhere: NCCL opens what another rank made (shmutils.cc, ncclShmOpen),
        # so the speaker is not to blame.
        yield suspect(
            "A shared-memory segment of another rank is not there: it ended, or has another /dev/shm.",
            found,
            confidence="possible",
            explains=(),
            fixes=(_OTHER_RANKS,),
        )
    elif found:
        certain = any(
            "shm" in remark.text.lower() or "shared memory" in remark.text.lower() for remark in found
        )
        yield suspect(
            "/dev/shm is too small: a shared-memory segment could not be created or filled.",
            found,
            confidence="certain" if certain else "likely",
            hosts=culprits(log, [remark.place for remark in found]),
        )
