"""NC705 pids-few."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.job_ranks import ranks_on
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Limits
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.snapshot import Node, Snapshot

PER_RANK = 100
_EXEMPT = frozenset({"sys_resource", "sys_admin"})


@check("NC705", "pids-few", "Every rank can start its threads", needs=("limits",))
def pids_few(snapshot: Snapshot) -> Iterator[Answer]:
    """The control group and RLIMIT_NPROC let every rank start some hundred processes and threads.

    ## Why it matters
    Threads count like processes. A rank has those of NCCL, CUDA, OpenMP and autograd, and each worker of a DataLoader
    has its own. Beyond the limit a start fails with "Resource temporarily unavailable" or "can't start new thread",
    often minutes into the job.

    ## How to fix
    `docker run --pids-limit=-1`; Kubernetes: `podPidsLimit` of the kubelet; systemd: `TasksMax=infinity`; for
    RLIMIT_NPROC `ulimit -u` or /etc/security/limits.d.

    ## Source
    cgroups(7), pids controller; setrlimit(2), RLIMIT_NPROC, which does not bind processes with CAP_SYS_RESOURCE or
    CAP_SYS_ADMIN (kernel/fork.c, copy_process). 100 for each rank are ncclcheck's own estimate.
    """
    for node, limits in snapshot.known("limits"):
        yield from _of_the_group(snapshot, node, limits)
        yield from _of_the_user(snapshot, node, limits)
    yield from not_reported(snapshot)


def _of_the_group(snapshot: Snapshot, node: Node, limits: Limits) -> Iterator[Answer]:
    left = limits.cgroup if isinstance(limits.cgroup, Missing) else limits.cgroup.pids_left
    most = limits.cgroup if isinstance(limits.cgroup, Missing) else limits.cgroup.pids_max
    ranks = ranks_on(snapshot, node)
    if isinstance(left, Missing):
        yield NotKnown(f"the pids limit of the control group: {left}", (node.host,))
    elif left is not None and left < PER_RANK * ranks:
        limit = "" if most is None or isinstance(most, Missing) else f" of {most}"
        yield _finding(
            node.host,
            f"the control group of {node.host} has {left}{limit} processes and threads left",
            ranks,
            ("pids left in the control group", str(left), "pids.max and pids.current of the control group"),
            "docker run --pids-limit=-1 ...",
        )


def _of_the_user(snapshot: Snapshot, node: Node, limits: Limits) -> Iterator[Answer]:
    limit, capabilities = limits.nproc, limits.capabilities
    ranks = ranks_on(snapshot, node)
    if limit is None or (not isinstance(limit, Missing) and limit >= PER_RANK * ranks):
        return
    if not isinstance(capabilities, Missing) and _EXEMPT & set(capabilities):
        return
    if isinstance(limit, Missing):
        yield NotKnown(f"RLIMIT_NPROC: {limit}", (node.host,))
        return
    yield _finding(
        node.host,
        f"the user's processes and threads on {node.host} are limited to {limit} together",
        ranks,
        ("RLIMIT_NPROC, soft", str(limit), "getrlimit"),
        "ulimit -u unlimited",
    )


def _finding(host: str, what: str, ranks: int, seen: tuple[str, str, str], command: str) -> Finding:
    subject, observed, source = seen
    return Finding(
        "warning",
        f"{what}, while {plural(ranks, 'rank')} may need {PER_RANK * ranks} ('can't start new thread')",
        (host,),
        (
            Evidence(
                (host,), subject, observed, f"at least {PER_RANK * ranks}: {PER_RANK} for each rank", source
            ),
        ),
        (Fix("raise the limit where the job starts", (command,)),),
    )
