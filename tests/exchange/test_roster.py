"""Who takes part, who is silent, and under which names. Real stores, no cluster."""

from __future__ import annotations

from ncclcheck.exchange.gather import Arrivals
from ncclcheck.exchange.messages import SCHEMA, Hello
from ncclcheck.exchange.roster import one_per_place, roster, silent_nodes, silent_ranks
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Knock
from tests.fact_builders import launch, master_path


def hello(node_rank: int, host: str, nnodes: int = 3) -> Hello:
    return Hello(SCHEMA, "0.1.0", host, launch(node_rank, nnodes))


def test_hosts_that_share_a_name_are_told_apart_by_their_rank() -> None:
    arrivals = Arrivals({1: hello(0, "ubuntu"), 2: hello(1, "ubuntu"), 3: hello(2, "gpu3")}, {}, 0.1)
    assert [silent.host for silent in roster(arrivals)] == ["ubuntu#0", "ubuntu#1", "gpu3"]


def test_two_processes_in_one_place_are_one_node_with_two_claims() -> None:
    arrivals = Arrivals({1: hello(0, "node1"), 2: hello(1, "node2"), 3: hello(1, "node2")}, {}, 0.1)
    members = roster(arrivals)
    assert [silent.host for silent in members] == ["node1", "node2", "node2"]
    assert [silent.ticket for silent in one_per_place(members)] == [1, 2]


def test_a_node_that_never_came_is_silent_and_named_by_what_is_known_of_it() -> None:
    arrivals = Arrivals({1: hello(0, "node1")}, {}, 30.0)
    knock = Knock("node2", 1, master_path(1, outcome="filtered"))
    silent = silent_nodes(launch(0, 3), arrivals, {1: knock})
    assert [silent.host for silent in silent] == ["node2", "node-rank-2"]
    assert silent[0].knock == knock
    assert isinstance(silent[1].knock, Missing)


def test_clashing_ranks_make_nobody_silent() -> None:
    arrivals = Arrivals({1: hello(0, "a"), 2: hello(1, "b"), 3: hello(1, "c")}, {}, 2.0)
    assert silent_nodes(launch(0, 3), arrivals, {}) == ()


def test_a_rank_that_never_came_is_silent_though_its_node_is_there() -> None:
    there = {
        ticket: Hello(SCHEMA, "0.1.0", f"node{node}", launch(node, 2, local_rank=local, local_world_size=2))
        for ticket, (node, local) in enumerate([(0, 0), (0, 1), (1, 0)])
    }
    (silent,) = silent_ranks(Arrivals(there, {}, 10.0))
    assert (silent.host, silent.node_rank) == ("node1-local-rank-1", 1)
    assert silent_nodes(launch(0, 2), Arrivals(there, {}, 10.0), {}) == ()


def test_the_missing_ranks_of_a_node_are_one_entry_however_many_the_node_speaks_of() -> None:
    def silent_of(size: int, *present: int) -> list[str]:
        there = {
            local: Hello(SCHEMA, "0.1.0", "node0", launch(0, 1, local_rank=local, local_world_size=size))
            for local in (0, *present)
        }
        return [silent.host for silent in silent_ranks(Arrivals(there, {}, 10.0))]

    assert silent_of(8, 1, 2) == ["node0-local-ranks-3-7"]
    assert silent_of(8, 2, 3, 4, 6, 7) == ["node0-local-ranks-1+5"]
    assert silent_of(4096) == ["node0-local-ranks-1-4095"]
    (odd,) = silent_of(4096, *range(2, 4096, 2))
    assert odd == "node0-local-ranks-1+3+5+7+9+11+13+15+..."
