"""NC702 memlock-low."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Limits
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Node, Snapshot

FAILS_KIB = (
    64 * 1024
)  # systemd's own default is 8 MiB, that of old kernels 64 KiB: neither holds one connection's buffers
NEED_KIB = 1 << 20
BY_RUNTIME = (
    "the runtime gives the limit (docker run --ulimit memlock=-1); what files of the image set: image-limits"
)
MIB_KIB = 1 << 10


@check(
    "NC702",
    "memlock-low",
    "RDMA can register the memory it needs",
    needs=("limits",),
    not_in_image=BY_RUNTIME,
)
def memlock_low(snapshot: Snapshot) -> Iterator[Answer]:
    """Where a node has RDMA devices, its processes may lock the memory that RDMA registers.

    ## Why it matters
    An RDMA device reads and writes memory by itself, so that memory is locked first, and counted against
    RLIMIT_MEMLOCK. Beyond the limit `ibv_reg_mr` fails ("Cannot allocate memory"), and NCCL ends with an unhandled
    system error at the first connection, or later, when more channels are opened.

    ## How to fix
    `docker run --ulimit memlock=-1` or `--cap-add IPC_LOCK`; on the host `* - memlock unlimited` in
    /etc/security/limits.d; for Slurm `LimitMEMLOCK=infinity` in the unit of slurmd; in Kubernetes the capability
    IPC_LOCK in the container's securityContext.

    ## Source
    Linux drivers/infiniband/core/umem.c (ib_umem_get: RLIMIT_MEMLOCK, unless CAP_IPC_LOCK). NCCL's user guide asks for
    `--ulimit memlock=-1`. 1 GiB per process is ncclcheck's own estimate of NCCL's buffers: 32 channels, both
    directions, 9.2 MiB each, rounded up; below 64 MiB not even one channel to a few peers fits.
    """
    for node, limits in snapshot.known("limits"):
        yield from _judged(node, limits)
    if snapshot.nodes and all(_without_devices(node) for node in snapshot.nodes):
        yield NotApplicable("no RDMA devices are there")
    yield from not_reported(snapshot)


def _without_devices(node: Node) -> bool:
    """True where it is known that nothing here registers memory: no port, or no device file to open."""
    rdma = node.facts.rdma
    return not isinstance(rdma, Missing) and (not rdma.ports or rdma.device_files == ())


def _judged(node: Node, limits: Limits) -> Iterator[Answer]:
    limit_kib, capabilities = limits.memlock_kib, limits.capabilities
    is_enough = limit_kib is None or (not isinstance(limit_kib, Missing) and limit_kib >= NEED_KIB)
    if (
        is_enough
        or _without_devices(node)
        or (not isinstance(capabilities, Missing) and "ipc_lock" in capabilities)
    ):
        return
    if isinstance(node.facts.rdma, Missing):
        yield NotKnown(f"RDMA devices: {node.facts.rdma}", (node.host,))
    elif isinstance(limit_kib, Missing):
        yield NotKnown(f"RLIMIT_MEMLOCK: {limit_kib}", (node.host,))
    elif isinstance(capabilities, Missing):
        yield NotKnown(
            f"CAP_IPC_LOCK, without which {limit_kib} KiB is too little: {capabilities}", (node.host,)
        )
    elif limit_kib is not None:
        yield _finding(node.host, limit_kib)


def _finding(host: str, limit_kib: int) -> Finding:
    fails = limit_kib < FAILS_KIB
    return Finding(
        "error" if fails else "warning",
        f"{host} lets a process lock {_size(limit_kib)} of memory without CAP_IPC_LOCK: RDMA "
        f"{'cannot register' if fails else 'may run out of room for'} NCCL's buffers ('ibv_reg_mr ... Cannot allocate "
        "memory')",
        (host,),
        (
            Evidence(
                (host,),
                "RLIMIT_MEMLOCK, soft",
                _size(limit_kib),
                f"unlimited, or at least {_size(NEED_KIB)}",
                "getrlimit; CapEff of /proc/self/status",
            ),
        ),
        (
            Fix(
                "lift the limit where the job starts: container, batch system or login",
                ("docker run --ulimit memlock=-1 ...", "ulimit -l   # what a shell there gets"),
            ),
        ),
    )


def _size(kib: int) -> str:
    return f"{kib} KiB" if kib < MIB_KIB else f"{kib / MIB_KIB:g} MiB"
