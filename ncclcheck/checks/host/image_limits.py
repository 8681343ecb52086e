"""NC714 image-limits."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.host.memlock_low import FAILS_KIB, NEED_KIB
from ncclcheck.checks.images import judged
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.image import SetLimit
from ncclcheck.model.snapshot import Node, Snapshot

_NOFILE = 65536
_NPROC = 4096
_WHY = {
    "memlock": "RDMA cannot register NCCL's buffers beyond it ('ibv_reg_mr ... Cannot allocate memory')",
    "nofile": "ranks of a large job open more sockets and files ('Too many open files')",
    "nproc": "the threads of all ranks, NCCL and the loaders count ('Resource temporarily unavailable')",
}


@check(
    "NC714",
    "image-limits",
    "The image does not lower resource limits",
    needs=("image",),
    image="only",
)
def image_limits(snapshot: Snapshot) -> Iterator[Answer]:
    """No line in limits.conf, limits.d or a shell's start files sets memlock, nofile or nproc too low for a job.

    Locked memory should be unlimited, at least 1 GiB; open files 65536; processes 4096. Without such a line the
    runtime decides (`docker run --ulimit`), as it does for /dev/shm (`--shm-size`).

    ## Why it matters
    Such a line often comes with a base image for another purpose. It applies to sessions (sshd, su, a login shell),
    which is how mpirun and many Slurm set-ups start ranks, so the job fails there although it works under `docker
    run`.

    ## How to fix
    Remove the line, or set `* - memlock unlimited` and `* - nofile 1048576`.

    ## Source
    limits.conf(5), bash(1); for locked memory as in memlock-low; 65536 and 4096 are ncclcheck's own estimates.
    """
    yield from judged(snapshot, "the limits", lambda image: image.limits, _judge)


def _judge(node: Node, limits: tuple[SetLimit, ...]) -> Iterator[Answer]:
    for limit in limits:
        least = {"memlock": NEED_KIB, "nofile": _NOFILE, "nproc": _NPROC}[limit.item]
        if not limit.value.isdecimal() or int(limit.value) >= least:
            continue  # unlimited, infinity, -1, or as much as the hard limit
        unit = " KiB" if limit.item == "memlock" else ""
        fails = limit.item == "memlock" and int(limit.value) < FAILS_KIB
        yield Finding(
            "error" if fails else "warning",
            f"{limit.file} in the image on {node.host} sets {limit.item} of {limit.whom} to {limit.value}{unit}: "
            f"{_WHY[limit.item]}",
            (node.host,),
            (
                Evidence(
                    (node.host,),
                    limit.item,
                    f"{limit.value}{unit}",
                    f"unlimited, or at least {least}{unit}",
                    f"{limit.file}, line {limit.line}",
                ),
            ),
            (
                Fix(
                    "remove the line from the image, or raise the limit",
                    (f"sed -n {limit.line}p {limit.file}",),
                ),
            ),
        )
