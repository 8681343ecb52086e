"""NC413 gpu-peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from ncclcheck.checks.gpus import GpuOn, by_text, closing, listed_gpus, together, values
from ncclcheck.checks.hosts import named
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.gpu import GpuState, PeerAccess
from ncclcheck.model.snapshot import Snapshot

_OK = "ok"
_SWITCHED_OFF = "disabled by registry key"
_UNTOLD = "unknown"
_FIX = Fix(
    "list the pairs without P2P, and find out whether ACS, the IOMMU or a driver setting disables it",
    ("nvidia-smi topo -p2p r", "nvidia-smi topo -m", "cat /proc/driver/nvidia/params"),
)
_Pair: TypeAlias = tuple[int, int]


@check(
    "NC413",
    "gpu-peers",
    "The GPUs of a node can read each other's memory",
    alike=("gpus", "pci", "torch_gpus"),
)
def gpu_peers(snapshot: Snapshot) -> Iterator[Answer]:
    """The driver allows peer access (P2P) between every two GPUs of a node that the hardware can connect.

    Hardware without P2P is not a fault: if the driver says that GPUs without NVLink, the chipset or the topology do
    not support it, the finding is information. It is a warning if both GPUs have active NVLinks, if most other nodes
    with the same GPUs allow the same pair, or if a driver setting disables it. GPUs in MIG mode are not peers.

    ## Why it matters
    NCCL then moves all data between these GPUs through CPU memory (SHM), at a fraction of the speed, and one such
    pair is the bottleneck of the node.

    ## How to fix
    `nvidia-smi topo -p2p r` shows the pairs. pcie-acs, pcie-iommu and fabric-manager check the usual causes. A
    virtual machine needs GPUs that share a switch.

    ## Source
    nvmlDeviceGetP2PStatus (NVML_P2P_CAPS_INDEX_READ); NCCL src/graph/paths.cc (ncclTopoCheckP2p), which asks the same.
    """
    gpus = listed_gpus(snapshot)
    known, unknown = values(gpus, "peers")
    states = {(gpu.host, gpu.gpu.index): gpu.gpu.state for gpu in gpus}
    several = _with_several(gpus) if unknown else set()
    yield from (not_known for not_known in unknown if set(not_known.hosts) & several)
    statuses = _statuses_of_pairs(known)
    everywhere: Counter[_Pair] = Counter()
    allowed: Counter[_Pair] = Counter()
    differing: list[tuple[str, dict[_Pair, str]]] = []
    for hosts, pairs in statuses:
        everywhere.update(dict.fromkeys(pairs, len(hosts)))
        fine = [pair for pair, status in pairs.items() if status == _OK]
        allowed.update(dict.fromkeys(fine, len(hosts)))
        if len(fine) < len(pairs):
            differing.extend((host, pairs) for host in hosts)
    order = {node.host: place for place, node in enumerate(snapshot.nodes)}
    found: dict[tuple[Severity, str], list[tuple[str, str]]] = {}
    for host, pairs in sorted(differing, key=lambda host_and_pairs: order[host_and_pairs[0]]):
        for (first, second), status in sorted(pairs.items()):
            pair_states = states[host, first], states.get((host, second), GpuState())
            if status == _OK or any(state.mig is True for state in pair_states):
                continue
            is_expected = status == _SWITCHED_OFF or all(map(_has_links, pair_states))
            others = everywhere[first, second] - 1
            is_expected = is_expected or 2 * allowed[first, second] > others  # most other nodes may
            severity: Severity = "warning" if is_expected else "info"
            found.setdefault((severity, status), []).append((host, f"{first}-{second}"))
    for (severity, status), members in found.items():
        for pairs_text, hosts in by_text(_of_hosts(members)):
            yield _finding(severity, status, pairs_text, hosts)
    yield from closing(snapshot, any(pairs for _, pairs in statuses), "shares its node with another GPU")


def _statuses_of_pairs(
    known: Sequence[tuple[GpuOn, Sequence[PeerAccess]]],
) -> list[tuple[tuple[str, ...], dict[_Pair, str]]]:
    """Return the status of each pair of GPUs, with the hosts that have the same. Equal peers are one object."""
    of_host: dict[str, list[tuple[int, Sequence[PeerAccess]]]] = {}
    for on, peers in known:
        of_host.setdefault(on.host, []).append((on.gpu.index, peers))
    alike: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for host, gpus in of_host.items():
        alike.setdefault(tuple([(index, id(peers)) for index, peers in gpus]), []).append(host)
    return [
        (
            tuple(hosts),
            {(index, peer.peer): peer.status for index, peers in of_host[hosts[0]] for peer in peers},
        )
        for hosts in alike.values()
    ]


def _with_several(gpus: Sequence[GpuOn]) -> set[str]:
    """The hosts with more than one GPU: the others have no peers."""
    return {host for host, count in Counter(gpu.host for gpu in gpus).items() if count > 1}


def _has_links(state: GpuState) -> bool:
    return not isinstance(state.nvlinks, Missing) and any(link.active is True for link in state.nvlinks)


def _of_hosts(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each host with its pairs."""
    of_host: dict[str, list[str]] = {}
    for host, pair in pairs:
        of_host.setdefault(host, []).append(pair)
    return [(host, together(host_pairs)) for host, host_pairs in of_host.items()]


def _finding(severity: Severity, status: str, pairs: str, hosts: tuple[str, ...]) -> Finding:
    why = "the driver gives no reason" if status == _UNTOLD else f"the driver says: {status}"
    return Finding(
        severity,
        f"GPUs of {named(hosts)} cannot read each other's memory: {pairs} ({why}): NCCL moves their "
        "data through CPU memory",
        hosts,
        (Evidence(hosts, f"P2P status of GPUs {pairs}", status, _OK, "NVML, nvmlDeviceGetP2PStatus"),),
        (_FIX,),
    )
