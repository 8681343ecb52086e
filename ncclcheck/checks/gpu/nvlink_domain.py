"""NC414 nvlink-domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncclcheck.checks.gpus import GpuOn, closing, listed_gpus, together, values
from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.gpu import Fabric
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number
from ncclcheck.nccl.prediction import effective_environment, known_version

_SAID = {
    "fails": "NCCL fails at its start; NCCL_MNNVL_ENABLE=0 lets it use the network",
    "network": "this NCCL (2.25 or 2.26) uses the network between nodes, and newer ones fail at their start",
    "off": "NCCL_MNNVL_ENABLE or NCCL_CUMEM_ENABLE is 0, and NCCL uses the network between nodes",
}
_FIX = Fix(
    "see the state of the fabric and of IMEX on these nodes, and ask the scheduler for nodes of one NVLink domain",
    ("nvidia-smi -q | grep -A6 Fabric", "nvidia-imex-ctl -N", "ls /dev/nvidia-caps-imex-channels"),
)


@check(
    "NC414",
    "nvlink-domain",
    "Nodes that NVLink connects are in one domain and share an IMEX channel",
    nodes=2,
    joined=True,
    alike=("gpu_driver", "gpus", "pci", "torch_gpus", "environment", "nccl", "software"),
)
def nvlink_domain(snapshot: Snapshot) -> Iterator[Answer]:
    """Where multi-node NVLink exists (GB200, GB300), no node stands alone in another domain, and all may use IMEX.

    Nodes of several racks are in several domains; that is not reported as long as each domain has more than one node.

    ## Why it matters
    NCCL uses NVLink between nodes whose GPUs report the same cluster UUID and clique, and otherwise the network: 191
    GB/s instead of 882 were published for 16 GB200. Without an IMEX channel NCCL fails at its start: since 2.27.3 with
    "MNNVL is available but not working on this system", up to 2.24 when it allocates memory. 2.25 and 2.26 continue and
    use the network. With NCCL_MNNVL_ENABLE=0 (and NCCL_CUMEM_ENABLE=0) every version uses the network.

    ## How to fix
    `nvidia-smi -q` shows the cluster UUID and the clique, `nvidia-imex-ctl -N` the state of IMEX on all nodes. A
    container needs /dev/nvidia-caps-imex-channels/channelN, the same N on every node. Until then NCCL_MNNVL_ENABLE=0
    lets the job run over the network.

    ## Source
    nvmlDeviceGetGpuFabricInfoV (clusterUuid, cliqueId); NCCL src/mnnvl.cc (ncclMnnvlCheck, 2.25.1 to 2.30.7) and
    src/init.cc (checkMNNVL, 2.21.5 to 2.24.3); NVIDIA IMEX service guide, IMEX channels; the figures:
    NVIDIA/cluster-readiness-engine, validation results.
    """
    fabrics, unknown = values(listed_gpus(snapshot), "fabric")
    yield from unknown
    is_there = any(fabric.domain for _, fabric in fabrics)
    if is_there:
        hosts_of = _hosts_of(fabrics)
        yield from _outside(fabrics)
        yield from _alone(hosts_of)
        for hosts in hosts_of.values():
            yield from _channels(snapshot, hosts)
    yield from closing(snapshot, bool(fabrics), "tells of its NVLink fabric")


def _hosts_of(fabrics: Sequence[tuple[GpuOn, Fabric]]) -> Mapping[str, list[str]]:
    """Return the hosts of each domain."""
    hosts_of: dict[str, list[str]] = {}
    for on, fabric in fabrics:
        if fabric.domain and on.host not in hosts_of.setdefault(fabric.domain, []):
            hosts_of[fabric.domain].append(on.host)
    return hosts_of


def _outside(fabrics: Sequence[tuple[GpuOn, Fabric]]) -> Iterator[Finding]:
    """GPUs in no domain, while others are in one."""
    outside: dict[str, list[str]] = {}
    for on, fabric in fabrics:
        if not fabric.domain:
            outside.setdefault(on.host, []).append(on.label)
    for host, labels in outside.items():
        yield _finding(
            f"{together(labels)} of {host} {verb(labels, 'is', 'are')} in no NVLink domain, while other GPUs are: NCCL "
            "uses the network for them",
            (host,),
            "none",
        )


def _alone(hosts_of: Mapping[str, list[str]]) -> Iterator[Finding]:
    """Nodes that are alone in their domain, while there are other domains."""
    alone = [(domain, hosts[0]) for domain, hosts in hosts_of.items() if len(hosts) == 1]
    if len(hosts_of) > 1:
        for domain, host in alone:
            yield _finding(
                f"{host} is alone in its NVLink domain: NCCL uses the network between it and the other nodes",
                (host,),
                domain,
            )


def _channels(snapshot: Snapshot, hosts: Sequence[str]) -> Iterator[Answer]:
    """The IMEX channels of the nodes of one domain."""
    if len(hosts) == 1:
        return
    channels: dict[str, tuple[int, ...]] = {}
    for node, driver in snapshot.known("gpu_driver"):
        if node.host not in hosts:
            continue
        if isinstance(driver.imex_channels, Missing):
            yield NotKnown(f"IMEX channels: {driver.imex_channels}", (node.host,))
        else:
            channels[node.host] = driver.imex_channels
    facts_of = {node.host: node.facts for node in snapshot.nodes}
    without: dict[str, list[str]] = {}
    for host in (host for host, numbers in channels.items() if not numbers):
        without.setdefault(_without_channel(facts_of[host]), []).append(host)
    for outcome, found in without.items():
        yield _finding(
            f"{named(found)} {verb(found, 'has', 'have')} no IMEX channel: {_SAID[outcome]}",
            tuple(found),
            "no IMEX channel",
            "error" if outcome == "fails" else "warning",
        )
    known = [set(numbers) for numbers in channels.values() if numbers]
    if known and not set.intersection(*known):
        shown = ", ".join(f"{host} {list(numbers)}" for host, numbers in channels.items() if numbers)
        hosts_with = tuple(host for host, numbers in channels.items() if numbers)
        fails = not all(_is_off(facts_of[host]) for host in hosts_with)
        yield _finding(
            f"no IMEX channel is the same on all nodes of the NVLink domain: {shown}: "
            + (
                "their GPUs cannot share memory, and NCCL fails when it connects them"
                if fails
                else _SAID["off"]
            ),
            hosts_with,
            shown,
            "error" if fails else "warning",
        )


def _without_channel(facts: NodeFacts) -> str:
    """Return what NCCL does on a node of an NVLink domain that has no IMEX channel: a key of `_SAID`.

    Memory with a FABRIC handle cannot be allocated there. ncclMnnvlCheck returns ncclSystemError since 2.27.3, and
    ncclSuccess without MNNVL in 2.25 and 2.26. Before, checkMNNVL does not try, and the first allocation fails.
    """
    if _is_off(facts):
        return "off"
    version = versions.parse(known_version(facts) or versions.NEWEST)
    return "network" if versions.MNNVL_TRIED_SINCE <= version < versions.MNNVL_FAILS_SINCE else "fails"


def _is_off(facts: NodeFacts) -> bool:
    environment = effective_environment(facts)
    if isinstance(environment, Missing):
        return False
    return any(number(environment.get(name), -1) == 0 for name in ("NCCL_MNNVL_ENABLE", "NCCL_CUMEM_ENABLE"))


def _finding(summary: str, hosts: tuple[str, ...], observed: str, severity: Severity = "warning") -> Finding:
    source = "NVML, nvmlDeviceGetGpuFabricInfoV; /dev/nvidia-caps-imex-channels"
    return Finding(
        severity,
        summary,
        hosts,
        (Evidence(hosts, "NVLink domain", observed, "one domain with a common IMEX channel", source),),
        (_FIX,),
    )
