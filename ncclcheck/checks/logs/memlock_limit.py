"""NC925 memlock-limit."""

from __future__ import annotations

from ncclcheck.checks.logs._causes import cause
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC925",
    "memlock-limit",
    "The locked-memory limit is high enough for RDMA",
    topics=("ib-no-memory",),
    confidence="likely",
    summary=(
        "An RDMA resource could not be allocated (Cannot allocate memory): the locked-memory limit (memlock) is "
        "too low."
    ),
    beside=("memlock",),
    explains=("rank-exception", "ib-link-or-fabric"),
    fixes=(
        Fix(
            "raise the locked-memory limit: ulimit -l unlimited; LimitMEMLOCK=infinity for slurmd or the "
            "container runtime; docker run --ulimit memlock=-1; in Kubernetes the capability IPC_LOCK as well",
            (
                "ulimit -l",
                'securityContext: {capabilities: {add: ["IPC_LOCK"]}}   # of the pod',
                "ncclcheck preflight --select memlock-low",
            ),
        ),
    ),
)
def memlock_limit(log: Log) -> None:
    """RDMA could not lock memory: the locked-memory limit is too low.

    ## Why it matters
    InfiniBand and RoCE register pinned memory; with a small limit the first registration or queue fails.

    ## How to fix
    Set the limit to unlimited for the user, the launcher's daemon and the container.

    ## Source
    NCCL misc/ibvwrap.cc (ENOMEM of ibv_reg_mr, ibv_create_cq, ibv_create_qp); ib_umem_get in Linux checks
    RLIMIT_MEMLOCK.
    """
