"""NC704 cpus-few."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.job_ranks import has_gpus, ranks_on, ranks_sharing_cpus
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Limits
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.snapshot import Node, Snapshot

PER_GPU_RANK = 2  # the rank's own thread, and NCCL's proxy that moves its data


@check("NC704", "cpus-few", "Every rank has enough CPUs", needs=("limits",))
def cpus_few(snapshot: Snapshot) -> Iterator[Answer]:
    """The job may use at least two CPUs for each rank with a GPU, by affinity, cpuset and quota.

    ## Why it matters
    Beside its own thread each NCCL rank has a proxy thread that feeds the network and must not wait for a CPU. Where
    Slurm gave one CPU per task, or a container has a quota, collectives take many times as long, the GPUs idle, and the
    network looks slow. Data loading needs CPUs beyond these.

    ## How to fix
    Slurm: `--cpus-per-task` (`srun` needs it too, it does not inherit it from sbatch) or `--exclusive`; docker: drop
    `--cpus` and `--cpuset-cpus`; Kubernetes: raise or drop the limit of `cpu`.

    ## Source
    sched_getaffinity(2); cpu.max, cpu.cfs_quota_us and the cpuset of the control groups (cgroups(7)); NCCL src/proxy.cc
    (one progress thread per communicator). Two for each rank with a GPU, one for one without, are the least that lets
    these threads run at the same time.
    """
    for node, limits in snapshot.known("limits"):
        if isinstance(limits.cpus, Missing) and not _too_few(snapshot, node, limits):
            yield NotKnown(f"the CPUs of this process: {limits.cpus}", (node.host,))
        quota = limits.cgroup if isinstance(limits.cgroup, Missing) else limits.cgroup.cpu_quota
        if isinstance(quota, Missing):
            yield NotKnown(f"the CPU quota: {quota}", (node.host,))
        yield from _judged(snapshot, node, limits)
    yield from not_reported(snapshot)


def _allowed(limits: Limits) -> Fact[int]:
    """The CPUs that this process may run on; where that was not read, its cpuset allows no more than so many."""
    if not isinstance(limits.cpus, Missing) or isinstance(limits.cgroup, Missing):
        return limits.cpus
    cpuset = limits.cgroup.cpuset_cpus
    return limits.cpus if cpuset is None or isinstance(cpuset, Missing) else cpuset


def _too_few(snapshot: Snapshot, node: Node, limits: Limits) -> bool:
    allowed, per_rank = _allowed(limits), PER_GPU_RANK if has_gpus(node) else 1
    return not isinstance(allowed, Missing) and allowed < per_rank * ranks_sharing_cpus(snapshot, node)


def _judged(snapshot: Snapshot, node: Node, limits: Limits) -> Iterator[Answer]:
    per_rank = PER_GPU_RANK if has_gpus(node) else 1
    allowed = _allowed(limits)
    if not isinstance(allowed, Missing) and _too_few(snapshot, node, limits):
        source = "sched_getaffinity; the cpuset of the control group"
        yield _finding(node, "may run on", allowed, ranks_sharing_cpus(snapshot, node), per_rank, source)
        return
    quota = None if isinstance(limits.cgroup, Missing) else limits.cgroup.cpu_quota
    if quota is not None and not isinstance(quota, Missing):
        ranks = ranks_on(snapshot, node)
        if quota < per_rank * ranks:
            source = "cpu.max or cpu.cfs_quota_us of the control group"
            yield _finding(node, "has a CPU quota of", quota, ranks, per_rank, source)


def _finding(node: Node, what: str, cpus: float, ranks: int, per_rank: int, source: str) -> Finding:
    who = f"{plural(ranks, 'rank')}{' with a GPU each' if per_rank > 1 else ''}"
    is_quota = "quota" in what
    return Finding(
        "warning",
        f"{node.host} {what} {cpus:g} CPU{'' if cpus == 1 else 's'} for {who}: the threads that move NCCL's data wait "
        "for a CPU, and every collective with them",
        (node.host,),
        (
            Evidence(
                (node.host,),
                "CPU quota" if is_quota else "CPUs allowed",
                f"{cpus:g}",
                f"at least {per_rank * ranks}: {per_rank} for each of {ranks} ranks",
                source,
            ),
        ),
        (
            Fix(
                "raise the container's CPU limit" if is_quota else "give the job the node's CPUs",
                ("docker run --cpus=0 ...",)
                if is_quota
                else (
                    f"srun --cpus-per-task={max(per_rank * ranks, per_rank)} ...",
                    "taskset -cp $$   # what a shell there may use",
                ),
            ),
        ),
    )
