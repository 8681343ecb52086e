"""NC401 gpu-count."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, unread, verb
from ncclcheck.checks.majority import compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

_LIST = ("nvidia-smi -L", "lspci | grep -i nvidia")


@check("NC401", "gpu-count", "Every node has the GPUs that the job uses")
def gpu_count(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node has the same number of GPUs (that of `--gpus-per-node`), and no fewer than the ranks started there.

    ## Why it matters
    A GPU that fell off the bus is simply not listed any more. A rank without a GPU of its own fails with "invalid
    device ordinal", or shares a GPU, which NCCL refuses ("Duplicate GPU detected").

    ## How to fix
    See what the driver lists (`nvidia-smi -L`) and what the bus has (`lspci`). Reset or reboot the node, take it out of
    the job, or start fewer ranks with `--nproc-per-node`.

    ## Source
    NVML's list of devices; NCCL src/init.cc (duplicate GPU).
    """
    expected = snapshot.expected_gpus_per_node
    yield from _compared(snapshot) if expected is None else _other_than(snapshot, expected)
    yield from _too_few(snapshot)
    yield from not_reported(snapshot)


def _counts(snapshot: Snapshot) -> list[tuple[str, int]]:
    return [(node.host, len(gpus)) for node, gpus in snapshot.known("gpus")]


def _without_driver(snapshot: Snapshot) -> list[str]:
    """Nodes that have no NVIDIA driver at all: whatever cards they have, a job finds none."""
    facts = ((node.host, node.facts.gpus) for node in snapshot.nodes)
    return [host for host, gpus in facts if isinstance(gpus, Missing) and gpus.missing == "absent"]


def _compared(snapshot: Snapshot) -> Iterator[Answer]:
    counts = _counts(snapshot)
    if any(count for _, count in counts):
        counts += [(host, 0) for host in _without_driver(snapshot)]
    elif counts:
        yield NotKnown("no GPU is listed", tuple(host for host, _ in counts))
    comparison = compare(counts)
    if comparison.differs:
        yield Finding(
            "warning",
            f"the number of GPUs differs: {sentence(comparison)}: a job with equal ranks per node fails or idles",
            comparison.odd_hosts,
            evidence(comparison, "GPUs", "NVML"),
            (Fix("see what the driver and the bus list", _LIST),),
        )
    yield from unread(snapshot, "gpus")


def _other_than(snapshot: Snapshot, expected: int) -> Iterator[Answer]:
    """One finding per wrong number, where the user said what is right."""
    without = _without_driver(snapshot)
    found: dict[int, list[str]] = {}
    for host, count in (*_counts(snapshot), *((host, 0) for host in without)):
        if count != expected:
            found.setdefault(count, []).append(host)
    for count, names in sorted(found.items()):
        hosts = tuple(names)
        why = " (no NVIDIA driver is there)" if set(hosts) <= set(without) else ""
        yield Finding(
            "error",
            f"{named(hosts)} {verb(hosts, 'has', 'have')} {_gpus(count)}{why} where {expected} "
            f"{'is' if expected == 1 else 'are'} demanded",
            hosts,
            (Evidence(hosts, "GPUs", str(count), str(expected), "NVML; --gpus-per-node of this run"),),
            (Fix("see what the driver and the bus list, or correct --gpus-per-node", _LIST),),
        )
    for one in unread(snapshot, "gpus"):
        if not set(one.hosts) <= set(without):
            yield one


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


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
            f"{named(hosts)} {verb(hosts, 'has', 'have')} {_gpus(count)} for {ranks} ranks: "
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
