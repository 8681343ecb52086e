"""NC925 memlock-limit."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_FIXES = (
    Fix(
        "raise the locked-memory limit: ulimit -l unlimited; LimitMEMLOCK=infinity for slurmd or the "
        "container runtime; docker run --ulimit memlock=-1",
        (
            "ulimit -l",
            "ncclcheck preflight --select memlock-low",
        ),
    ),
)


@cause("NC925", "memlock-limit", "The locked-memory limit allowed RDMA")
def memlock_limit(log: Log) -> Iterator[Suspect]:
    """Memory could not be locked for RDMA: the limit of locked memory is too low.

    ## Why it matters
    InfiniBand and RoCE register pinned memory; with a small limit the first registration or queue fails.

    ## How to fix
    Set the limit to unlimited for the user, the launcher's daemon and the container.

    ## Source
    NCCL misc/ibvwrap.cc (ENOMEM of ibv_reg_mr, ibv_create_cq, ibv_create_qp); ib_umem_get in Linux checks
    RLIMIT_MEMLOCK.
    """
    found = remarks(log, "ib-no-memory")
    if found:
        limits = [remark for remark in remarks(log, "memlock") if remark.values.get("kib")]
        yield suspect(
            "An RDMA resource could not be allocated (Cannot allocate memory): the locked-memory limit "
            "(memlock) is too low.",
            [*found, *limits],
            hosts=culprits(log, [remark.place for remark in found]),
            explains=("rank-exception", "ib-link-or-fabric"),
            fixes=_FIXES,
        )
