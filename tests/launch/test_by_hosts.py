"""Nodes counted by the hosts of their processes: any mapping of ranks, absent ranks, equal names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ncclcheck.launch.by_hosts import Counted, LaunchedProcess, counted, missing_ranks, unplaced
from ncclcheck.model.launch import Launch, Told


def process(
    rank: int, host: str, local: tuple[int, int], world: int, told: Told = "local-rank"
) -> LaunchedProcess:
    own = Launch("openmpi", rank, world, local[0], local[1], 0, 1, "head", 29500)
    return LaunchedProcess(unplaced(own, told), host, f"machine of {host}")


def job(hosts: Sequence[str], told: Told = "local-rank") -> dict[int, LaunchedProcess]:
    """The processes of a job, by ticket (rank + 1): `hosts` has the host of each rank."""
    return {
        rank + 1: process(
            rank,
            host,
            (hosts[:rank].count(host), hosts.count(host) if told == "local-rank" else 1),
            len(hosts),
            told,
        )
        for rank, host in enumerate(hosts)
    }


def nodes(found: Counted) -> list[int]:
    return [launch.node_rank for _, launch in sorted(found.launches.items())]


UNEVEN = ["a", "a", "a", "b", "c", "c"]


def test_three_one_and_two_ranks_are_three_nodes() -> None:
    found = counted(job(UNEVEN), {})
    assert nodes(found) == [0, 0, 0, 1, 2, 2]
    assert {launch.nnodes for launch in found.launches.values()} == {3}
    assert {launch.told for launch in found.launches.values()} == {"place"}
    assert found.absent == {}


@given(st.lists(st.sampled_from("abcde"), min_size=2, max_size=12), st.sampled_from(["local-rank", "rank"]))
def test_whatever_the_mapping_hosts_are_nodes_in_the_order_of_their_first_ranks(
    hosts: list[str], told: Told
) -> None:
    processes = job(hosts, told)
    if len(set(hosts)) == 1 and told == "local-rank":
        assert all(part.launch.told == "place" for part in processes.values())
        return
    found = counted(processes, {})
    order = list(dict.fromkeys(hosts))
    assert nodes(found) == [order.index(host) for host in hosts]
    assert {launch.nnodes for launch in found.launches.values()} == {len(order)}
    assert [launch.local_world_size for _, launch in sorted(found.launches.items())] == [
        hosts.count(host) for host in hosts
    ]


@pytest.mark.parametrize(
    ("came", "silent", "absent"),
    [
        ({1, 2, 3, 5, 6}, {}, {1: "rank-3"}),
        ({1, 2, 3}, {}, {1: "ranks-3-5"}),
        ({1, 2, 3}, {3: "b", 4: "c"}, {1: "b", 2: "c", 3: "rank-5"}),
        ({1, 4, 5, 6}, {}, {}),  # further ranks of a node whose agent is there: it knows how many it has
        ({1, 2, 3, 4, 6}, {}, {2: "c"}),  # its agent did not come, and another rank tells its name
    ],
)
def test_ranks_that_did_not_come(came: set[int], silent: Mapping[int, str], absent: dict[int, str]) -> None:
    processes = {ticket: part for ticket, part in job(UNEVEN).items() if ticket in came}
    found = counted(processes, silent)
    assert {number: node.host for number, node in found.absent.items()} == absent
    assert found.launches.keys() == came
    assert bool(missing_ranks(list(processes.values()))) == bool(absent)


def test_nodes_of_the_same_name_are_told_apart_by_their_addresses() -> None:
    processes = {
        ticket: LaunchedProcess(part.launch, "localhost", part.machine)
        for ticket, part in job(UNEVEN).items()
    }
    assert nodes(counted(processes, {})) == [0, 0, 0, 1, 2, 2]


def test_an_address_that_came_between_two_starts_makes_no_second_node() -> None:
    processes = job(UNEVEN)
    processes[2] = LaunchedProcess(processes[2].launch, "a", "another address")
    assert nodes(counted(processes, {})) == [0, 0, 0, 1, 2, 2]


def test_processes_that_drew_no_local_rank_are_nodes_of_their_own() -> None:
    processes = {
        rank + 1: process(rank, "a", (0, 1), 3, "rank") for rank in range(3)
    }  # they met in a shared folder
    assert nodes(counted(processes, {})) == [0, 1, 2]


def test_a_number_of_nodes_on_the_command_line_that_is_not_the_count_is_a_contradiction() -> None:
    found = counted(job(UNEVEN), {}, 2)
    (contradiction,) = found.launches[1].contradictions
    assert set(contradiction.said.values()) == {"2", "3"}
    assert counted(job(UNEVEN), {}, 3).launches[1].contradictions == ()


def test_the_same_rank_twice_is_two_nodes_with_one_rank() -> None:
    processes = job(["a", "b"])
    processes[3] = LaunchedProcess(replace(processes[2].launch, rank=0), "c", "machine of c")
    found = counted(processes, {})
    assert sorted(launch.rank for launch in found.launches.values()) == [0, 0, 1]
    assert {launch.nnodes for launch in found.launches.values()} == {3}
