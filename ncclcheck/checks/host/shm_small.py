"""NC701 shm-small."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.job_ranks import has_gpus, ranks_on
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import DevShm
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.number import number
from ncclcheck.nccl.prediction import effective_environment

# One connection's buffers of all protocols: LL 512 KiB, LL128 4800 KiB, Simple 4 MiB, and a page (see Source).
BUFFER_KIB = (512 * 8 * 8 * 16 + 120 * 640 * 8 * 8 + (4 << 20) + 4096) // 1024
CHANNELS = 4
DOCKER_KIB = 64 * 1024
ADVISED_KIB = 1 << 20
BY_RUNTIME = "the runtime gives /dev/shm its size (docker run --shm-size, else 64 MiB): no image knows it"


@check(
    "NC701",
    "shm-small",
    "/dev/shm is large enough for the ranks",
    needs=("limits",),
    not_in_image=BY_RUNTIME,
)
def shm_small(snapshot: Snapshot) -> Iterator[Answer]:
    """/dev/shm has room for the buffers of NCCL's shared-memory transport, and is not docker's default of 64 MiB.

    ## Why it matters
    Where two GPUs of a node cannot read each other's memory, NCCL moves data through files in /dev/shm: 9.2 MiB for
    each connection, one per rank and channel. When they do not fit, the job ends with "failed to extend
    /dev/shm/nccl-...". The workers of torch's DataLoader hand their batches over in /dev/shm too, and die with "Bus
    error" when it is full. Containers get 64 MiB by default.

    ## How to fix
    Give the container more: `docker run --shm-size=1g` or `--ipc=host`; in Kubernetes an emptyDir with `medium:
    Memory` mounted at /dev/shm. Where it is large but full, remove the `nccl-*` and `torch_*` files of ended jobs.

    ## Source
    NCCL src/transport/shm.cc (shmRecvSetup: one file per connection with the buffers of all protocols), sizes in
    src/init.cc (DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE, DEFAULT_BUFFSIZE): 9637888 bytes together. Four channels
    are ncclcheck's own estimate for GPUs without direct access to each other. From 2.24 on NCCL uses CUDA's own shared
    memory instead where that works. NCCL's user guide (Troubleshooting, Docker) names --shm-size=1g; 64 MiB is the
    default of docker run.
    """
    for node, limits in snapshot.known("limits"):
        shm = limits.dev_shm
        if isinstance(shm, Missing):
            yield NotKnown(f"/dev/shm: {shm}", (node.host,))
        elif isinstance(shm.size_kib, Missing):
            yield NotKnown(f"the size of /dev/shm: {shm.size_kib}", (node.host,))
        else:
            yield from _judged(snapshot, node, shm, shm.size_kib)
    yield from not_reported(snapshot)


def _judged(snapshot: Snapshot, node: Node, shm: DevShm, size_kib: int) -> Iterator[Answer]:
    ranks = ranks_on(snapshot, node)
    shared = ranks > 1 and (has_gpus(node) or bool(snapshot.expected_gpus_per_node))
    need_kib = max(DOCKER_KIB + 1, ranks * CHANNELS * BUFFER_KIB if shared else 0)
    free_kib = size_kib if isinstance(shm.free_kib, Missing) else min(shm.free_kib, size_kib)
    if free_kib >= need_kib:
        if isinstance(shm.free_kib, Missing):
            yield NotKnown(f"what is free in /dev/shm: {shm.free_kib}", (node.host,))
        return
    is_full = size_kib >= need_kib
    what = (
        f"/dev/shm of {node.host} is full: {_mib(free_kib)} of {_mib(size_kib)} are free"
        if is_full
        else f"/dev/shm of {node.host} holds {_mib(size_kib)}"
        + (", docker's default" if size_kib == DOCKER_KIB else "")
    )
    why = (
        f"{plural(ranks, 'rank')} that share memory need {_mib(need_kib)} "
        f"({ranks} x {CHANNELS} channels x {BUFFER_KIB / 1024:.1f} MiB)"
        if shared
        else f"the workers of one DataLoader fill {_mib(DOCKER_KIB)} with a few batches"
    )
    yield Finding(
        "error" if shared and _without_p2p(node) else "warning",
        f"{what}, and {why}: ranks end with 'failed to extend /dev/shm' or 'Bus error'",
        (node.host,),
        (
            Evidence(
                (node.host,),
                "free in /dev/shm" if is_full else "size of /dev/shm",
                f"{_mib(free_kib if is_full else size_kib)} ({shm.type})",
                f"at least {_mib(need_kib)}" if shared else f"more than {_mib(DOCKER_KIB)}",
                "statvfs of /dev/shm; NCCL src/transport/shm.cc",
            ),
        ),
        (_emptied() if is_full else _larger(max(need_kib, ADVISED_KIB)),),
    )


def _without_p2p(node: Node) -> bool:
    """NCCL_P2P_DISABLE=1: shared memory is then the only way between the GPUs of a node."""
    settings = effective_environment(node.facts)
    value = None if isinstance(settings, Missing) else settings.get("NCCL_P2P_DISABLE")
    return number(value, 0) == 1


def _mib(kib: int) -> str:
    return f"{kib / 1024:.0f} MiB" if kib < 1 << 20 else f"{kib / (1 << 20):.1f} GiB"


def _larger(kib: int) -> Fix:
    gib = -(-kib // (1 << 20))
    return Fix(
        "give the container a larger /dev/shm, or the host's; in Kubernetes mount an emptyDir with medium: Memory",
        (f"docker run --shm-size={gib}g ...", "docker run --ipc=host ..."),
    )


def _emptied() -> Fix:
    return Fix(
        "remove the files of ended jobs",
        ("ls -l /dev/shm", "lsof +D /dev/shm   # who still uses it"),
        risk="a file that a running job uses must stay",
    )
