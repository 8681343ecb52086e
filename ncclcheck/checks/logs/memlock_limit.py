"""NC925 memlock-limit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, exceptions, exits, remarks
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_RESULT = re.compile(r"\s*\d{1,12}(?:\s+\d{1,12}\.\d{1,6})+\s*$")  # a row of a benchmark


_SMALL_KIB = 1 << 20  # a queue needs little, a buffer of NCCL some MiB; the usual limits are 64 KiB and 8 MiB
_QUEUE = re.compile(r"ibv_create_(?:qp|cq)\b")
_ALLOCATES = re.compile(r"ibv_(?:create_(?:qp|cq)|reg_mr|alloc_pd)")


@cause(
    "NC925",
    "memlock-limit",
    "The locked-memory limit is too low for RDMA",
    explains=("rank-exception", "ib-link-or-fabric", "net-plugin-config"),
    judges=True,
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
def memlock_limit(log: Log) -> Iterator[Suspect]:
    """RDMA could not lock memory: the locked-memory limit is too low.

    ## Why it matters
    InfiniBand and RoCE register pinned memory; with a small limit the first registration or queue fails.

    ## How to fix
    Set the limit to unlimited for the user, the launcher's daemon and the container.

    ## Source
    NCCL misc/ibvwrap.cc (ENOMEM of ibv_reg_mr, ibv_create_cq, ibv_create_qp); ib_umem_get in Linux checks
    RLIMIT_MEMLOCK.
    """
    found = remarks(log, "ib-no-memory") or _under_a_limit(log)
    if found:
        yield suspect(
            "An RDMA resource could not be allocated (Cannot allocate memory): the locked-memory limit (memlock) is "
            "too low.",
            [*found, *remarks(log, "memlock")],
            confidence="possible"
            if _went_on(log, found[-1].place.line)
            else "certain"
            if _is_small(log) and remarks(log, "ib-no-memory")
            else "likely",
            hosts=culprits(log, [remark.place for remark in found]),
        )
    elif unknown := _without_a_reason(log):
        yield suspect(
            "An RDMA queue could not be made, and this version of NCCL does not print why; a locked-memory limit "
            "(memlock) that is too low is the usual reason.",
            unknown,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in unknown]),
        )


def _without_a_reason(log: Log) -> list[Remark]:
    """Return the queues that could not be made, as NCCL up to 2.8 says it: without the reason."""
    return [
        remark
        for remark in remarks(log, "ib-verb")
        if _QUEUE.search(remark.text) and remark.text.rstrip().endswith("failed")
    ]


def _under_a_limit(log: Log) -> tuple[Remark, ...]:
    """Return the verbs that failed without a reason, where the log shows a small limit of locked memory."""
    return tuple(
        remark
        for remark in remarks(log, "ib-verb")
        if _is_small(log) and _ALLOCATES.search(remark.values.get("verb", ""))
    )


def _is_small(log: Log) -> bool:
    """Return True if the log shows a limit of locked memory that a buffer of NCCL exceeds."""
    return any(int(remark.values["kib"][:12]) <= _SMALL_KIB for remark in remarks(log, "memlock"))


def _went_on(log: Log, line: int) -> bool:
    """Return True if the program printed results after that line and nothing failed: it took another transport."""
    if exits(log) or exceptions(log, "ordinary", "after-effect"):
        return False
    return any(word.last.line > line and _RESULT.match(word.last_text) for word in log.words)
