"""What only arrival gives a process: a node rank, or a local rank on its host."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.join.place import draw_local_rank, machine_digest, placed_by_arrival
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import NOT_RANKED, Launch
from tests.fact_builders import launch


def arrived(place: Launch, host: str, memory: MemoryBackend) -> Launch:
    found = placed_by_arrival(place, host, within_process(memory, 0))
    assert not isinstance(found, Missing)
    return found


def test_the_first_process_of_a_host_is_its_agent_and_rank_0_drew_before_all() -> None:
    memory = MemoryBackend()
    assert draw_local_rank(within_process(memory, 0), "node1") == 0  # rank 0, before anybody is let in
    rank = {number: replace(launch(number, 4), told="rank") for number in range(4)}
    assert arrived(rank[0], "node1", memory).local_rank == 0
    assert arrived(rank[2], "node2", memory).local_rank == 0
    assert arrived(rank[1], "node1", memory).local_rank == 1
    assert arrived(rank[3], "node2", memory).local_rank == 1


def test_nodes_of_a_rendezvous_get_ranks_in_order_of_arrival_and_one_too_many_clashes() -> None:
    memory = MemoryBackend()
    unranked = replace(launch(0, 3), node_rank=NOT_RANKED, rank=NOT_RANKED, rendezvous="c10d")
    assert [arrived(unranked, "node2", memory).node_rank for _ in range(3)] == [1, 2, 2]


def test_a_process_with_a_place_keeps_it() -> None:
    memory = MemoryBackend()
    assert arrived(launch(2, 4), "node2", memory) == launch(2, 4)


def test_a_machine_is_the_same_one_at_every_look() -> None:
    assert machine_digest() == machine_digest() != ""
