"""NC401 gpu-count."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.majority import compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check("NC401", "gpu-count", "Every node has the GPUs that the job uses", needs=("gpus",))
def gpu_count(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node has the same number of GPUs, and no fewer than the ranks that the job starts there.

    ## Why it matters
    A GPU that fell off the bus is simply not listed any more. A rank without a GPU of its own fails with "invalid
    device ordinal", or shares a GPU, which NCCL refuses ("Duplicate GPU detected").

    ## How to fix
    See what the driver lists (`nvidia-smi -L`) and what the bus has (`lspci`). Reset or reboot the node, take it out of
    the job, or start fewer ranks with `--nproc-per-node`.

    ## Source
    NVML's list of devices; NCCL src/init.cc (duplicate GPU).
    """
    counts = [(node.host, len(gpus)) for node, gpus in snapshot.known("gpus")]
    without = tuple(
        node.host
        for node in snapshot.nodes
        if isinstance(node.facts.gpus, Missing) and node.facts.gpus.missing == "absent"
    )
    if any(count for _, count in counts):
        counts += [(host, 0) for host in without]
    elif counts:
        yield NotKnown("no GPU is listed", tuple(host for host, _ in counts))
    comparison = compare(counts)
    if comparison.differs:
        yield Finding(
            "warning",
            f"the number of GPUs differs: {sentence(comparison)}: a job with equal ranks per node fails or idles",
            comparison.odd_hosts,
            evidence(comparison, "GPUs", "NVML"),
            (Fix("see what the driver and the bus list", ("nvidia-smi -L", "lspci | grep -i nvidia")),),
        )
    yield from _too_few(snapshot)
    yield from not_reported(snapshot)


def _too_few(snapshot: Snapshot) -> Iterator[Answer]:
    short: dict[tuple[int, int], list[str]] = {}
    for node, gpus in snapshot.known("gpus"):
        launch = node.facts.launch
        ranks = None if isinstance(launch, Missing) else launch.nproc_per_node
        if gpus and ranks is not None and ranks > len(gpus):
            short.setdefault((ranks, len(gpus)), []).append(node.host)
    for (ranks, count), found in short.items():
        hosts = tuple(found)
        yield Finding(
            "error",
            f"{named(hosts)} {verb(hosts, 'has', 'have')} {count} GPUs for {ranks} ranks: "
            "NCCL refuses two ranks on one GPU",
            hosts,
            (
                Evidence(
                    hosts, "GPUs", str(count), f"at least {ranks}", "NVML; --nproc-per-node of the launcher"
                ),
            ),
            (
                Fix(
                    f"start {count} ranks per node (--nproc-per-node {count}), or find the missing GPUs",
                    ("nvidia-smi -L",),
                ),
            ),
        )
