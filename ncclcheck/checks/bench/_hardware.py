"""The hardware that a benchmark ran on, as the reference table names it."""

from __future__ import annotations

from ncclcheck.checks.bench._links import is_one_nvlink_domain, network_terms, network_used, processes_of
from ncclcheck.measure.reference import Hardware
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.benchmarks.ceiling import Fabric
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.network import IB, SOCKET

_GBIT = 8.0
# Networks of plug-ins as they call themselves: aws-ofi-nccl over EFA or Slingshot; Google's GPUDirect-TCPX and -TCPXO.
_RDMA_NAMES = ("aws libfabric", "ofi", "ibext", "ib", "ucx", "sharp")
_TCP_NAMES = ("fastrak", "gpudirecttcpx", "tcpx")


def hardware_of(snapshot: Snapshot, bench: BenchResult) -> Hardware | None:
    """Return the hardware of the run; None with gloo, where nodes or GPUs differ, or where a part is not known."""
    nodes = max(1, bench.nodes)
    names = {_gpu(node) for node in snapshot.nodes}
    gpu = names.pop() if len(names) == 1 else ""
    if bench.backend != "nccl" or not gpu or bench.world_size % nodes:
        return None
    fabric = _between_nodes(snapshot, bench) if nodes > 1 else _inside(snapshot)
    if fabric is None:
        return None
    terms = network_terms(snapshot, bench) if nodes > 1 else ()
    rate = (
        None
        if isinstance(terms, Missing)
        else next((term.spec_gb_s for term in terms if term.spec_gb_s), None)
    )
    return Hardware(gpu, bench.world_size // nodes, nodes, fabric, None if rate is None else rate * _GBIT)


def _gpu(node: Node) -> str:
    """Return the name of all GPUs of the node; empty where they differ or are not known."""
    gpus = node.facts.gpus
    names = set() if isinstance(gpus, Missing) else {gpu.name for gpu in gpus if isinstance(gpu.name, str)}
    return names.pop() if len(names) == 1 else ""


def _inside(snapshot: Snapshot) -> Fabric | None:
    gpus = [gpu for _, node_gpus in snapshot.known("gpus") for gpu in node_gpus]
    links = [gpu.state.nvlinks for gpu in gpus]
    if not links or any(isinstance(link, Missing) for link in links):
        return None
    return "nvlink" if all(links) else "pcie" if not any(links) else None


def _between_nodes(snapshot: Snapshot, bench: BenchResult) -> Fabric | None:
    if is_one_nvlink_domain(snapshot, bench):
        return "mnnvl"
    used = {network_used(node, processes_of(bench, node.host)) for node in snapshot.nodes}
    network = used.pop() if len(used) == 1 else None
    if network in (IB, SOCKET):
        return "rdma" if network == IB else "tcp"
    name = (network or "").lower()
    if any(word in name for word in _TCP_NAMES):
        return "tcp"
    return "rdma" if any(name.startswith(word) for word in _RDMA_NAMES) else None
