"""Ranks of one host that talk through the network: since something separates them, or since NCCL prefers it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck.checks.bench._gpu_links import gpu_of
from ncclcheck.checks.bench._links import processes_of
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu, NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import topology
from ncclcheck.nccl.gpus.nvlinks import are_joined

OWN_LOG = "the NCCL log of the benchmark's own ranks"
_KEEP_APART = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_HOSTID")


class _Pair(Struct, frozen=True):
    """Two ranks of one host, and the channels from the first to the second, as both wrote them."""

    source: int
    target: int
    vias: tuple[str, ...]


def inside_hosts(snapshot: Snapshot, bench: BenchResult) -> Iterator[Finding]:
    """Yield a finding for each host whose ranks talk through the network."""
    facts_of = {node.host: node.facts for node in snapshot.nodes}
    ranks_of: dict[str, dict[int, Process]] = {}
    for host, process in all_processes(bench):
        if process.rank is not None and process.ranks == bench.world_size:
            ranks_of.setdefault(host, {})[process.rank] = process
    for host, ranks in ranks_of.items():
        pairs = _over_the_network(processes_of(bench, host), ranks)
        if pairs and host in facts_of:
            yield _finding(host, pairs, ranks, facts_of[host])


def all_processes(bench: BenchResult) -> Iterator[tuple[str, Process]]:
    """Yield each worker's parsed NCCL log, with its host."""
    for node in bench.logs:
        if not isinstance(node.processes, Missing):
            for process in node.processes:
                yield node.host, process


def _over_the_network(processes: Iterable[Process], ranks: Mapping[int, Process]) -> list[_Pair]:
    vias: dict[tuple[int, int], dict[str, None]] = {}
    for process in processes:
        for link in process.links:
            if link.via.startswith("NET/") and link.source in ranks and link.target in ranks:
                vias.setdefault((link.source, link.target), {})[link.via] = None
    return [_Pair(source, target, tuple(found)) for (source, target), found in sorted(vias.items())]


def _finding(host: str, pairs: Sequence[_Pair], ranks: Mapping[int, Process], facts: NodeFacts) -> Finding:
    environment = {} if isinstance(facts.environment, Missing) else facts.environment
    settings = [f"{name}={environment[name]}" for name in _KEEP_APART if name in environment]
    if _is_apart(environment):
        return _separated(host, pairs, f"{', '.join(settings)} separates them")
    separated = [pair for pair in pairs if not _prefers_network(pair, ranks, facts)]
    if separated:
        return _separated(host, separated, "neither P2P nor shared memory worked")
    return _preferred(host, pairs)


def _is_apart(environment: Mapping[str, str]) -> bool:
    """Return True if a variable keeps ranks from shared memory or NVLink; a level above LOC keeps NVLink."""
    return (
        "NCCL_HOSTID" in environment
        or environment.get("NCCL_SHM_DISABLE") == "1"
        or environment.get("NCCL_P2P_DISABLE") == "1"
        or environment.get("NCCL_P2P_LEVEL", "").upper() in ("0", "LOC")
    )


def _prefers_network(pair: _Pair, ranks: Mapping[int, Process], facts: NodeFacts) -> bool:
    """Return True if NCCL takes the network here by itself: since it counts on more from it.

    ncclTopoCheckNet (graph/paths.cc, 2.18 to 2.30): both GPUs reach a card within PXB, so by GPUDirect, at more than
    the path between the GPUs has. That path is no NVLink, and none below one switch, which the cards share.
    """
    if not any("GDRDMA" in via for via in pair.vias):
        return False
    source, target = ranks[pair.source], ranks[pair.target]
    if source.local_ranks is not None and source.local_ranks < len(ranks):
        return False  # NCCL takes them for ranks of several hosts
    if isinstance(facts.gpus, Missing) or not facts.gpus:
        return True
    first, second = gpu_of(source, facts), gpu_of(target, facts)
    if first is None or second is None:  # the log does not tell which of the node's GPUs they are
        return not all(are_joined(facts.gpus[0], gpu, facts) for gpu in facts.gpus[1:])
    if are_joined(first, second, facts):
        return False
    return not (_reaches(first, second) and _distance(facts, (first, second)) in topology.BELOW_SWITCHES)


def _reaches(gpu: Gpu, peer: Gpu) -> bool:
    peers = gpu.state.peers
    return not isinstance(peers, Missing) and any(
        access.peer == peer.index and access.status == "ok" for access in peers
    )


def _distance(facts: NodeFacts, gpus: Sequence[Gpu]) -> str | None:
    environment = {} if isinstance(facts.environment, Missing) else facts.environment
    if isinstance(facts.pci, Missing) or topology.file_before_sys(facts.pci, environment):
        return None
    places = topology.positions(facts.pci)
    ends = [places.get(_known(gpu.pci)) for gpu in gpus]
    return topology.distance(ends[0], ends[1]) if ends[0] and ends[1] else None


def _known(value: Fact[str]) -> str:
    return "" if isinstance(value, Missing) else value


def _separated(host: str, pairs: Sequence[_Pair], why: str) -> Finding:
    pair = pairs[0]
    return Finding(
        "error",
        f"the ranks of {host} communicate over the network (rank {pair.source} to {pair.target} via "
        f"{pair.vias[0]}): {why}; NVLink, PCIe and shared memory are faster, and the network cards carry traffic that "
        "could stay inside the node",
        (host,),
        _channels(host, pairs, "P2P or SHM"),
        (
            Fix(
                "unset the variables that separate the ranks; give containers of one host the same "
                "/dev/shm and namespaces",
                ("df -h /dev/shm", "nvidia-smi topo -p2p r"),
            ),
        ),
    )


def _preferred(host: str, pairs: Sequence[_Pair]) -> Finding:
    pair = pairs[0]
    return Finding(
        "info",
        f"NCCL connects ranks of {host} through their network cards (rank {pair.source} to {pair.target} via "
        f"{pair.vias[0]}): it does so where it counts on more bandwidth from cards that are near both GPUs than from "
        "the path between the GPUs",
        (host,),
        _channels(host, pairs, "P2P or SHM, or this"),
        (
            Fix(
                "compare with the path between the GPUs, which NCCL_NET_DISABLE_INTRA=1 makes NCCL use",
                ("NCCL_NET_DISABLE_INTRA=1 ncclcheck bench",),
            ),
        ),
    )


def _channels(host: str, pairs: Sequence[_Pair], expected: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            (host,), f"channel from rank {pair.source} to rank {pair.target}", pair.vias[0], expected, OWN_LOG
        )
        for pair in pairs[:8]
    )
