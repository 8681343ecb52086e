"""The benchmark of a run as node 0 leads it: the plan, who starts what, and its end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from ncclcheck.bench.footprint import memory_needed, shortage
from ncclcheck.bench.free_memory import free_bytes
from ncclcheck.bench.task import NO_TORCH
from ncclcheck.bench.watch import DEADLINES, Deadlines
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.gather import gather_answers
from ncclcheck.exchange.messages import Bench
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.bench import BenchPlan, BenchResult, RankFailure
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.bench_network import Network, bench_network, transport_text
from ncclcheck.run.bench_watch import Watch
from ncclcheck.run.context import Context
from ncclcheck.run.lead import Member, Orders

END_S = 6.0
LEAST_S = 5.0  # less time than this is not worth starting workers for
LATEST_S = 2.0  # of the run's own time, kept for the verdict when nodes are waited for at the end


def lead_bench(
    context: Context,
    orders: Orders,
    store: Store,
    agents: tuple[Member, ...],
    snapshot: Snapshot,
    deadline: Deadline,
    keep: Callable[[BenchResult], None],
) -> Fact[BenchResult]:
    """The result, whatever became of it; Missing where it could not be started. `keep` gets each partial result."""
    missing = cannot_measure(snapshot, deadline)
    if missing is not None:
        return missing
    network = bench_network(context.options, snapshot)
    if isinstance(network, Missing):
        return network
    order = order_of(agents, network, _plan(context, network, deadline), deadline.left())
    too_large = too_large_for(order, network, snapshot)
    if too_large is None and context.options.head is None:  # else node 0 is another machine
        too_large = too_large_here(order, network, snapshot)
    if too_large is not None:
        return too_large
    deadlines = quick_deadlines(order) if context.options.bench.under == "as-is" else DEADLINES
    watch = Watch(context, store, agents, order, network, keep, deadlines)
    if network.fault:
        return watch.result((_never_started(order, network),))
    context.say(f"measuring with {order.world_size} ranks over {transport_text(network)}")
    orders.give(order)
    try:
        result = watch.until(deadline)
    except KeyboardInterrupt:
        keep(watch.result((), "interrupted"))
        raise
    finally:
        stop_workers(context, store, [watch])
    return without_torch(result) or watch.with_logs(result)


def without_torch(result: BenchResult) -> Missing | None:
    """Why nothing could be measured, where torch is broken: a fault of the installation, and no rank's."""
    broken = [one.detail for one in result.failures if one.detail.startswith(NO_TORCH)]
    return Missing("error", broken[0]) if broken and not result.started else None


def quick_deadlines(order: Bench) -> Deadlines:
    """For a job that may well hang as it is: that is called soon after all of its processes are there.

    NCCL looks at every GPU and link before it has a group, which takes seconds on a healthy node with eight.
    """
    group_s = (20.0 if order.plan.backend == "nccl" else 8.0) + order.world_size / 50
    return Deadlines(join_s=group_s, first_call_s=group_s, stall_s=8.0)


def cannot_measure(snapshot: Snapshot, deadline: Deadline) -> Missing | None:
    """Why no group of ranks can be formed at all; None where one may be."""
    if snapshot.silent:
        absent = ", ".join(sorted({one.host for one in snapshot.silent}))
        return Missing("unsupported", f"a benchmark needs all nodes; silent: {absent}")
    ranks = [claim.node_rank for claim in snapshot.claims if claim.is_agent]
    if len(set(ranks)) != len(ranks):
        return Missing("unsupported", "node ranks clash, so no group can be formed")
    # Those who came over ssh or through a folder may be unable to do what the ranks have to.
    ways = ((node, way) for node, way in snapshot.known("master") if node.node_rank != 0)
    apart = sorted(node.host for node, way in ways if way.outcome != "answered")
    if apart:
        who = ", ".join(apart)
        return Missing(
            "unsupported", f"the ranks meet by TCP at the master address, which {who} cannot reach"
        )
    if deadline.left() < LEAST_S:
        return Missing("timeout", f"{deadline.left():.0f} s were left of --timeout")
    return None


def stop_workers(context: Context, store: Store, watches: Sequence[Watch]) -> None:
    """The nodes were told to end these workers, and those that still speak have done so, or a moment has passed."""
    for watch in watches:
        watch.stop()
    patience = Deadline(min(END_S, max(LATEST_S, context.deadline.left() - LATEST_S)))
    for watch in watches:
        gather_answers(store, watch.speaking(), watch.done_key, patience)


def _never_started(order: Bench, network: Network) -> RankFailure:
    host, fault = next(iter(network.fault.items()))
    rank = order.hosts.index(host)
    more = f"; likewise on {len(network.fault) - 1} more nodes" if len(network.fault) > 1 else ""
    return RankFailure(rank, host, "error", "choosing a network interface", fault + more, 0.0)


def too_large_for(order: Bench, network: Network, snapshot: Snapshot) -> Missing | None:
    """Why the plan cannot fit the memory of a node, going by all that is built in; None where it may."""
    need = memory_needed(order.plan, order.world_size)
    for node in snapshot.nodes:
        gpus, limits = node.facts.gpus, node.facts.limits
        if order.plan.backend == "nccl":
            sizes = [] if isinstance(gpus, Missing) else [gpu.memory_bytes for gpu in gpus]
            has = min((one for one in sizes if not isinstance(one, Missing)), default=None)
            each, whose = need, "a GPU"
        else:
            total = limits if isinstance(limits, Missing) else limits.mem_total_kib
            has = None if isinstance(total, Missing) else total * 1024
            each, whose = need * network.ranks_of[node.host], "the memory"
        if has is not None and each > has:
            ranks = 1 if order.plan.backend == "nccl" else network.ranks_of[node.host]
            text = shortage(order.plan, order.world_size, ranks, has, f"{whose} of {node.host} has")
            return Missing("unsupported", text)
    return None


def too_large_here(order: Bench, network: Network, snapshot: Snapshot) -> Missing | None:
    """Why the plan does not fit what is free now on this node, node 0; None where it does. Others look themselves."""
    host = min(snapshot.nodes, key=lambda node: node.node_rank).host
    ranks, free = network.ranks_of[host], free_bytes()
    if order.plan.backend == "nccl" or memory_needed(order.plan, order.world_size) * ranks <= free:
        return None
    text = shortage(order.plan, order.world_size, ranks, free, f"and what is free on {host} is")
    return Missing("unsupported", text)


def order_of(agents: Sequence[Member], network: Network, plan: BenchPlan, seconds: float) -> Bench:
    """Who starts which ranks, in which environment."""
    counts = {str(one.ticket): network.ranks_of[one.host] for one in agents}
    first_rank: dict[str, int] = {}
    hosts: list[str] = []
    for one in agents:
        first_rank[str(one.ticket)] = len(hosts)
        hosts += [one.host] * counts[str(one.ticket)]
    environments = {str(one.ticket): network.environment_of.get(one.host, {}) for one in agents}
    return Bench(
        plan,
        len(hosts),
        tuple(hosts),
        first_rank,
        counts,
        environments,
        secrets.token_hex(8),
        seconds,
    )


def _plan(context: Context, network: Network, deadline: Deadline) -> BenchPlan:
    request = context.options.bench
    return BenchPlan(
        backend=network.backend,
        ops=request.ops,
        sizes_bytes=request.sizes_bytes,
        dtype=request.dtype,
        warmup=request.warmup,
        iters=request.iters,
        budget_s=min(request.budget_s, max(1.0, deadline.left() / 2)),
        verify=request.verify,
        cuda_graph=request.cuda_graph,
    )
