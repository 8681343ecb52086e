"""Who starts the ranks of a benchmark: the agent of a node, or each process that the launcher started there."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.bench.nodes.starting import order_of, starting_processes
from ncclcheck.exchange.roster import Member
from ncclcheck.model.bench import Backend, BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from tests.fact_builders import launch

PLAN = BenchPlan("nccl", ("all_reduce",), (1 << 10,), "float32", 1, 2, 5.0, verify=True)


def task(ticket: int, node: int, local_rank: int) -> Member:
    """A task of two nodes with two tasks each."""
    place = replace(
        launch(node, 2), rank=2 * node + local_rank, local_rank=local_rank, local_world_size=2, world_size=4
    )
    return Member(ticket, place, f"node0{node + 1}")


AGENTS = (task(1, 0, 0), task(4, 1, 0))
FURTHER = (task(7, 1, 1), task(2, 0, 1))  # in the order in which they came


def network(ranks: int, backend: Backend = "nccl") -> BenchNetwork:
    return BenchNetwork(
        backend, {"node01": ranks, "node02": ranks}, {}, {"node02": {"NCCL_DEBUG": "WARN"}}, "a test"
    )


def started(
    *, ranks: int, further: tuple[Member, ...] = FURTHER, backend: Backend = "nccl"
) -> list[tuple[int, int]]:
    """Ticket and number of ranks of each process that starts some."""
    found = starting_processes(AGENTS, further, network(ranks, backend))
    return [(process.member.ticket, process.ranks) for process in found]


def test_each_task_starts_its_own_rank_where_there_is_one_for_each() -> None:
    assert started(ranks=2) == [(1, 1), (2, 1), (4, 1), (7, 1)]


def test_elsewhere_the_agent_starts_all_ranks_of_its_node() -> None:
    assert started(ranks=8) == [(1, 8), (4, 8)]
    assert started(ranks=2, further=()) == [(1, 2), (4, 2)]
    assert started(ranks=2, further=FURTHER[:1]) == [(1, 2), (4, 1), (7, 1)]
    assert started(ranks=2, backend="gloo") == [(1, 2), (4, 2)]


def test_the_order_numbers_the_ranks_by_node_and_task() -> None:
    order = order_of(starting_processes(AGENTS, FURTHER, network(2)), network(2), PLAN, 30.0)
    assert order.first_rank == {"1": 0, "2": 1, "4": 2, "7": 3}
    assert set(order.count.values()) == {1}
    assert order.hosts == ("node01", "node01", "node02", "node02")
    assert order.environments["7"] == {"NCCL_DEBUG": "WARN"}
