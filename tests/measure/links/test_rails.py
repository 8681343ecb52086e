"""Rails: which transfers are made, and whose rail is slow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ncclcheck.measure.blame import slow_links
from ncclcheck.measure.links.rails import SlowRail, inside_rounds, rail_rounds, slow_rails
from ncclcheck.model.bench import LinkSpeed


def hosts(nodes: int, each: int = 8) -> list[str]:
    return [f"node{number // each + 1:02}" for number in range(nodes * each)]


def links(of: list[str], gb_s: Callable[[int, int], float]) -> list[LinkSpeed]:
    pairs = [pair for pairs in (*rail_rounds(of), *inside_rounds(of)) for pair in pairs]
    return [LinkSpeed(a, of[a], b, of[b], gb_s(a, b) if of[a] != of[b] else 300.0) for a, b in pairs]


@pytest.mark.parametrize("nodes", [2, 3, 4, 9])
def test_gpu_i_of_a_node_sends_to_gpu_i_of_others_and_no_gpu_does_two_things_at_once(nodes: int) -> None:
    of = hosts(nodes)
    rounds = rail_rounds(of)
    for pairs in rounds:
        ranks = [rank for pair in pairs for rank in pair]
        assert len(ranks) == len(set(ranks))
        assert all(a % 8 == b % 8 and of[a] != of[b] for a, b in pairs)
    sent = {pair for pairs in rounds for pair in pairs}
    assert {rank for rank, _ in sent} == set(range(8 * nodes))
    assert sent == {(b, a) for a, b in sent}


def test_inside_a_node_each_gpu_meets_three_others() -> None:
    of = hosts(2)
    pairs = {pair for pairs in inside_rounds(of) for pair in pairs}
    assert all(of[a] == of[b] for a, b in pairs)
    assert {sum(a == rank for a, _ in pairs) for rank in range(16)} == {3}
    assert inside_rounds(["node01", "node02"]) == rail_rounds(["node01", "node01"]) == ()


def test_nodes_with_different_numbers_of_gpus() -> None:
    of = ["node01"] * 2 + ["node02"] * 3 + ["node03"]
    sent = {pair for pairs in rail_rounds(of) for pair in pairs}
    assert {rank for pair in sent for rank in pair} == {
        0,
        1,
        2,
        3,
        5,
    }  # the third GPU of node02 has no partner


def test_healthy_rails_are_silent() -> None:
    for nodes in (1, 2, 4):
        found = links(hosts(nodes), lambda a, b: 48.0 + (a * 7 + b) % 3 / 2)
        assert slow_rails(found) == ()
        assert slow_links(found) == ((), ())


def test_the_slow_rail_of_a_node_is_named_and_no_other() -> None:
    (slow,) = slow_rails(links(hosts(4), lambda a, b: 24.0 if 11 in (a, b) else 48.0))
    assert (slow.rank, slow.host, slow.place, slow.is_sure) == (11, "node02", "rail", True)
    assert (slow.sends_gb_s, slow.receives_gb_s, slow.usual_gb_s) == (24.0, 24.0, 48.0)
    assert len(slow.peers) == 3
    (one_way,) = slow_rails(links(hosts(4), lambda a, _: 12.0 if a == 11 else 48.0))
    assert (one_way.rank, one_way.sends_gb_s, one_way.receives_gb_s) == (11, 12.0, None)


def test_of_two_nodes_the_slow_rail_is_known_and_not_its_end() -> None:
    found = links(hosts(2), lambda a, b: 24.0 if 11 in (a, b) else 48.0)
    assert slow_rails(found) == (SlowRail(3, "node01", "rail", 24.0, 24.0, 48.0, (11,), is_sure=False),)
    (one_way,) = slow_rails(links(hosts(2), lambda a, _: 24.0 if a == 11 else 48.0))
    assert (one_way.rank, one_way.sends_gb_s, one_way.receives_gb_s) == (3, None, 24.0)


def test_two_rails_are_too_few_to_say_which_is_slow() -> None:
    assert slow_rails(links(hosts(2, 2), lambda a, b: 24.0 if 1 in (a, b) else 48.0)) == ()


def test_a_gpu_whose_links_inside_the_node_are_slow_is_named() -> None:
    of = hosts(1)
    found = [
        LinkSpeed(a, of[a], b, of[b], 90.0 if 5 in (a, b) else 380.0)
        for pairs in inside_rounds(of)
        for a, b in pairs
    ]
    (slow,) = slow_rails(found)
    assert (slow.rank, slow.place) == (5, "inside")


def test_a_machine_that_is_built_unevenly_is_silent() -> None:
    """Of four GPUs two have a bridge; the others reach each other through the processor."""
    of = hosts(1, 4)
    found = [
        LinkSpeed(a, of[a], b, of[b], 50.0 if {a, b} == {0, 1} else 20.0)
        for pairs in inside_rounds(of)
        for a, b in pairs
    ]
    assert slow_rails(found) == ()


def test_one_gpu_on_each_node_is_judged_by_nodes_as_before() -> None:
    found = links(hosts(4, 1), lambda a, _: 12.0 if a == 2 else 48.0)
    assert slow_rails(found) == ()
    ends, _ = slow_links(found)
    assert [end.host for end in ends] == ["node03"]
