"""Does the plan of a benchmark fit into the memory of the nodes."""

from __future__ import annotations

from ncclcheck.bench.footprint import memory_needed, shortage
from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.facts.host.free_memory import free_bytes
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot


def too_large_for(order: BenchOrder, network: BenchNetwork, snapshot: Snapshot) -> Missing | None:
    """Return why the plan cannot fit the memory of a node, going by all that is built in; None where it may."""
    need = memory_needed(order.plan, order.world_size)
    for node in snapshot.nodes:
        gpus, limits = node.facts.gpus, node.facts.limits
        if order.plan.backend == "nccl":
            sizes = [] if isinstance(gpus, Missing) else [gpu.memory_bytes for gpu in gpus]
            has = min((size for size in sizes if not isinstance(size, Missing)), default=None)
            ranks, whose = 1, "a GPU"
        else:
            total = limits if isinstance(limits, Missing) else limits.mem_total_kib
            has = None if isinstance(total, Missing) else total * 1024
            ranks, whose = network.ranks_of[node.host], "the memory"
        if has is not None and need * ranks > has:
            text = shortage(order.plan, order.world_size, ranks, has, f"{whose} of {node.host} has")
            return Missing("unsupported", text)
    return None


def too_large_here(order: BenchOrder, network: BenchNetwork, snapshot: Snapshot) -> Missing | None:
    """Return why the plan does not fit what is free now on this node, node 0. The others look themselves."""
    host = min(snapshot.nodes, key=lambda node: node.node_rank).host
    ranks, free = network.ranks_of[host], free_bytes()
    if order.plan.backend == "nccl" or memory_needed(order.plan, order.world_size) * ranks <= free:
        return None
    text = shortage(order.plan, order.world_size, ranks, free, f"and what is free on {host} is")
    return Missing("unsupported", text)
