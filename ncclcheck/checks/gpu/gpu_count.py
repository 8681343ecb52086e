"""NC401 gpu-count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.gpus import by_text, label, together
from ncclcheck.checks.hosts import named, not_reported, unread, verb
from ncclcheck.checks.majority import compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.gpus.job_gpus import SHARES_GPUS, shares_gpus
from ncclcheck.nccl.topology import gpu_addresses

_LIST = ("nvidia-smi -L", "lspci | grep -i nvidia")


@check("NC401", "gpu-count", "Every node has the GPUs that the job uses")
def gpu_count(snapshot: Snapshot) -> Iterator[Answer]:
    """Every node has the same number of GPUs (that of `--gpus-per-node`), and one for each rank.

    The check also asks the PCI bus and torch. A GPU on the bus that the driver does not list is named by its address,
    unless the job has as many GPUs as it wants: a container may have only some of a node's GPUs.

    ## Why it matters
    A GPU that fell off the bus is no longer listed. A rank without a GPU of its own fails with "invalid device
    ordinal", or shares a GPU, which NCCL refuses ("Duplicate GPU detected")
    unless it is 2.30.3 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1 is set.

    ## How to fix
    Compare what the driver lists (`nvidia-smi -L`) with what is on the bus (`lspci`). Reset or reboot the node, leave
    it out of the job, or start fewer ranks with `--nproc-per-node`.

    ## Source
    NVML's list of devices; /sys/bus/pci; torch.cuda.device_count(); NCCL src/init.cc (duplicate GPU).
    """
    expected = snapshot.expected_gpus_per_node
    yield from _compared(snapshot) if expected is None else _other_than(snapshot, expected)
    yield from _too_few(snapshot)
    yield from _fell_off(snapshot)
    yield from _without_handle(snapshot)
    yield from _not_in_torch(snapshot)
    yield from not_reported(snapshot)


def _counts(snapshot: Snapshot) -> list[tuple[str, int]]:
    """Return what the drivers list; where NVML's library is not there, what torch sees."""
    counts = []
    for node in snapshot.nodes:
        gpus, torch = node.facts.gpus, node.facts.torch_gpus
        if not isinstance(gpus, Missing):
            counts.append((node.host, len(gpus)))
        elif (
            gpus.missing == "absent"
            and not isinstance(torch, Missing)
            and isinstance(torch.count, int)
            and torch.count
        ):
            counts.append((node.host, torch.count))
    return counts


def _without_handle(snapshot: Snapshot) -> Iterator[NotKnown]:
    """GPUs that the driver counts, and of which it cannot even tell the name or address: they may be of no use."""
    for node, gpus in snapshot.known("gpus"):
        for gpu in gpus:
            why = gpu.name
            if isinstance(why, Missing) and isinstance(gpu.uuid, Missing) and isinstance(gpu.pci, Missing):
                yield NotKnown(
                    f"whether {label(gpu)} can be used, which the driver counts: {why}", (node.host,)
                )


def _without_driver(snapshot: Snapshot) -> list[str]:
    """Nodes that have no library of NVIDIA's driver, where torch sees no GPU either: a job finds none."""
    facts = ((node.host, node.facts.gpus) for node in snapshot.nodes)
    counted = {host for host, _ in _counts(snapshot)}
    absent = (host for host, gpus in facts if isinstance(gpus, Missing) and gpus.missing == "absent")
    return [host for host in absent if host not in counted]


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
            f"the number of GPUs differs: {sentence(comparison)}: a job with equal ranks per node "
            "fails or leaves GPUs idle",
            comparison.odd_hosts,
            evidence(comparison, "GPUs", "NVML"),
            (Fix("compare the GPUs that the driver lists with those on the PCI bus", _LIST),),
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
            f"{named(hosts)} {verb(hosts, 'has', 'have')} {_gpus(count)}{why} but {expected} "
            f"{'is' if expected == 1 else 'are'} required",
            hosts,
            (Evidence(hosts, "GPUs", str(count), str(expected), "NVML; --gpus-per-node of this run"),),
            (
                Fix(
                    (
                        "compare the GPUs that the driver lists with those on the PCI bus, or correct "
                        "--gpus-per-node"
                    ),
                    _LIST,
                ),
            ),
        )
    for known in unread(snapshot, "gpus"):
        if not set(known.hosts) <= set(without):
            yield known
    if expected == 0:  # no driver may be there because there is no GPU: the bus has to say so too
        for node in snapshot.nodes:
            if node.host in without and isinstance(node.facts.pci, Missing):
                yield NotKnown(f"which GPUs the PCI bus has: {node.facts.pci}", (node.host,))


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _expected_gpus(snapshot: Snapshot, node: Node) -> int | None:
    """How many GPUs the job needs on the node; None where nobody said so."""
    if snapshot.expected_gpus_per_node is not None:
        return snapshot.expected_gpus_per_node
    return _ranks(node)


def _ranks(node: Node) -> int | None:
    """How many ranks the launcher starts on the node; None where it did not say."""
    launch = node.facts.launch
    return None if isinstance(launch, Missing) else launch.nproc_per_node


def _fell_off(snapshot: Snapshot) -> Iterator[Answer]:
    """GPUs of the PCI bus that the driver does not list, as long as the job may miss them."""
    found: list[tuple[str, str]] = []
    for node, gpus in snapshot.known("gpus"):
        pci, expected = node.facts.pci, _expected_gpus(snapshot, node)
        if expected is not None and len(gpus) >= expected:
            continue
        if isinstance(pci, Missing):
            if pci.missing != "absent":
                yield NotKnown(f"which GPUs the PCI bus has: {pci}", (node.host,))
            continue
        listed = {gpu.pci for gpu in gpus}
        unread = sum(isinstance(gpu.pci, Missing) for gpu in gpus)
        lacking = [address for address in gpu_addresses(pci) if address.lower() not in listed]
        if len(lacking) > unread:
            found.append((node.host, together(lacking)))
    for addresses, hosts in by_text(found):
        yield Finding(
            "warning",
            f"{named(hosts)}: the PCI bus has GPUs that the driver does not list: {addresses}: they fell off the bus, "
            "have no driver, or were not given to this container",
            hosts,
            (Evidence(hosts, "GPUs that NVML lacks", addresses, "none", "/sys/bus/pci; NVML"),),
            (
                Fix(
                    (
                        "compare the GPUs that the driver lists with those on the PCI bus; look for Xid 79 "
                        "in the kernel log"
                    ),
                    _LIST,
                ),
            ),
        )


def _not_in_torch(snapshot: Snapshot) -> Iterator[Answer]:
    """GPUs that torch does not see though nothing in the environment hides them: CUDA does not start, or MIG."""
    found: dict[tuple[int, int], list[str]] = {}
    sliced: dict[tuple[int, int], list[str]] = {}
    for node, gpus in snapshot.known("gpus"):
        torch, environment = node.facts.torch_gpus, node.facts.environment
        count = torch if isinstance(torch, Missing) else torch.count
        if isinstance(count, Missing) or isinstance(environment, Missing):
            unasked = count if isinstance(count, Missing) else environment
            # A torch without CUDA is of no use for GPUs, and known to see none.
            if gpus and isinstance(unasked, Missing) and unasked.missing != "unsupported":
                yield NotKnown(f"how many GPUs torch sees: {unasked}", (node.host,))
        elif "CUDA_VISIBLE_DEVICES" in environment:
            continue
        elif not any(gpu.state.mig is True for gpu in gpus):
            if count < len(gpus):
                found.setdefault((count, len(gpus)), []).append(node.host)
        elif (ranks := _ranks(node)) is not None and count < ranks:
            sliced.setdefault((count, ranks), []).append(node.host)
    for (count, ranks), hosts in sliced.items():
        yield _torch_sees(
            hosts,
            count,
            f"at least {ranks}",
            f"for {ranks} ranks: its GPUs are in MIG mode, where a process gets one instance, and "
            "NCCL has no peer access between instances",
            Fix("switch MIG off for this job, or start one rank", ("nvidia-smi -q -d MIG | grep -A2 Mode",)),
        )
    for (count, total), hosts in found.items():
        yield _torch_sees(
            hosts,
            count,
            str(total),
            f"of {total}, though no setting hides any: CUDA does not start",
            Fix("find out why CUDA does not start", ("python -c 'import torch; torch.cuda.init()'",)),
        )


def _torch_sees(hosts: Sequence[str], count: int, expected: str, why: str, fix: Fix) -> Finding:
    return Finding(
        "error",
        f"torch on {named(hosts)} sees {_gpus(count)} {why}",
        tuple(hosts),
        (Evidence(tuple(hosts), "GPUs of torch", str(count), expected, "torch.cuda.device_count(); NVML"),),
        (fix,),
    )


def _too_few(snapshot: Snapshot) -> Iterator[Answer]:
    short: dict[tuple[int, int], list[str]] = {}
    for node, gpus in snapshot.known("gpus"):
        ranks = _ranks(node)
        if gpus and ranks is not None and ranks > len(gpus) and not shares_gpus(node.facts):
            short.setdefault((ranks, len(gpus)), []).append(node.host)
    for (ranks, count), found in short.items():
        hosts = tuple(found)
        yield Finding(
            "error",
            f"{named(hosts)} {verb(hosts, 'has', 'have')} {_gpus(count)} for {ranks} ranks: "
            f"NCCL refuses two ranks on one GPU ({SHARES_GPUS}=1 allows it, from 2.30.3 on)",
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
