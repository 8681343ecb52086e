"""Which processes of a run start the ranks of a benchmark, and how many each."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence

from msgspec import Struct

from ncclcheck.bench.nodes.bench_order import BenchOrder
from ncclcheck.exchange.roster import Member
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork


class Starting(Struct, frozen=True):
    """A process of the run, and how many ranks it starts on its node."""

    member: Member
    ranks: int


def starting_processes(
    agents: Sequence[Member], further: Collection[Member], network: BenchNetwork
) -> tuple[Starting, ...]:
    """Return who starts ranks, in the order of these ranks. `further`: the launched processes beside the nodes' agents.

    NCCL's ranks are started by the processes that the launcher started, where it started one for each: each of them has
    the GPU and the CPUs that the launcher gave to it alone (`srun --gpus-per-task=1 --cpus-per-task=8`). Elsewhere the
    agent of a node starts all ranks there.
    """
    found: list[Starting] = []
    for agent in agents:
        ranks = network.ranks_of[agent.host]
        node_members = [member for member in further if member.host == agent.host]
        if network.backend == "nccl" and node_members and len(node_members) + 1 == ranks:
            node_members.sort(key=lambda member: member.launch.local_rank)
            found += [Starting(member, 1) for member in (agent, *node_members)]
        else:
            found.append(Starting(agent, ranks))
    return tuple(found)


def order_of(
    starting: Collection[Starting], network: BenchNetwork, plan: BenchPlan, seconds: float
) -> BenchOrder:
    """Return who starts which ranks, in which environment."""
    first_rank: dict[str, int] = {}
    hosts: list[str] = []
    for process in starting:
        first_rank[str(process.member.ticket)] = len(hosts)
        hosts += [process.member.host] * process.ranks
    return BenchOrder(
        plan,
        len(hosts),
        tuple(hosts),
        first_rank,
        {str(process.member.ticket): process.ranks for process in starting},
        {
            str(process.member.ticket): network.environment_of.get(process.member.host, {})
            for process in starting
        },
        secrets.token_hex(8),
        seconds,
    )
