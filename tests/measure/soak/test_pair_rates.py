"""Whom a drop comes from."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.links.pairing import pairs_of_turn
from ncclcheck.measure.soak.pair_rates import PairHistory, drop_source
from ncclcheck.model.benchmarks.soak import SoakPair
from tests.soak_builders import HOSTS, pairs_block


def parts(slow: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    return {(a, b): slow.get((a, b), 1.0) for a in HOSTS for b in HOSTS if a != b}


def test_a_node_that_sends_less_is_named_with_its_direction() -> None:
    found = drop_source(parts({("node02", host): 0.85 for host in HOSTS if host != "node02"}), 0.15)
    assert found is not None
    assert (found.hosts, found.direction) == (("node02",), "send")
    assert found.part == pytest.approx(0.15)


def test_a_node_that_receives_less_and_one_that_does_both() -> None:
    receives = {(host, "node03"): 0.8 for host in HOSTS if host != "node03"}
    found = drop_source(parts(receives), 0.2)
    assert found is not None
    assert (found.hosts, found.direction) == (("node03",), "receive")
    both = {**receives, **{("node03", host): 0.8 for host in HOSTS if host != "node03"}}
    found = drop_source(parts(both), 0.2)
    assert found is not None
    assert (found.hosts, found.direction) == (("node03",), "both")


def test_a_single_path_is_named_by_both_ends() -> None:
    found = drop_source(parts({("node01", "node04"): 0.7}), 0.1)
    assert found is not None
    assert (found.hosts, found.direction) == (("node01", "node04"), None)


def test_two_nodes_are_named_as_a_path() -> None:
    found = drop_source({("a", "b"): 0.8, ("b", "a"): 1.0}, 0.2)
    assert found is not None
    assert found.hosts == ("a", "b")


def test_where_all_are_slow_alike_or_none_is_nobody_is_named() -> None:
    assert drop_source(parts({}), 0.1) is None
    assert drop_source(dict.fromkeys(parts({}), 0.8), 0.2) is None
    assert drop_source({}, 0.2) is None


def test_a_rate_is_compared_with_the_same_pair_before_and_with_no_other() -> None:
    history = PairHistory()
    assert history.parts([SoakPair("a", "b", 1.0)]) == {}
    history.add([SoakPair("a", "b", 2.0), SoakPair("b", "a", 1.0)])
    assert history.parts([SoakPair("a", "b", 1.0), SoakPair("a", "c", 1.5)]) == {("a", "b"): 0.5}


@pytest.mark.parametrize("nodes", [8, 16, 32])
def test_paths_across_leaves_are_no_sign_of_a_slow_node(nodes: int) -> None:
    def turn(number: int) -> list[SoakPair]:
        pairs = [*pairs_of_turn(nodes, number), *((b, a) for a, b in pairs_of_turn(nodes, number))]
        return [
            SoakPair(str(a), str(b), 10.0 if a // (nodes // 2) == b // (nodes // 2) else 4.0)
            for a, b in pairs
        ]

    history = PairHistory()
    for number in range(3):
        history.add(turn(number))
    for first in range(nodes - 1):
        now = [pair for number in range(first, first + 3) for pair in turn(number % (nodes - 1))]
        assert drop_source(history.parts(now), 0.1) is None


def test_two_nodes_slow_both_ways_are_one_path_in_both_directions() -> None:
    found = drop_source({("a", "b"): 0.8, ("b", "a"): 0.79}, 0.2)
    assert found is not None
    assert (set(found.hosts), found.direction) == ({"a", "b"}, "both")


def test_nodes_that_are_equally_slow_are_all_named() -> None:
    slow = {(host, to): 0.8 for host in HOSTS[2:] for to in HOSTS if host != to}
    found = drop_source(parts(slow), 0.2)
    assert found is not None
    assert (found.hosts, found.direction) == (HOSTS[2:], "send")


def test_many_slow_paths_without_a_common_end_name_nobody() -> None:
    across = {(a, b): 0.5 for a in HOSTS[:2] for b in HOSTS[2:]}
    assert drop_source(parts({**across, **{(b, a): 0.5 for a, b in across}}), 0.2) is None


def test_the_pairs_of_a_block_name_their_sender() -> None:
    history = PairHistory()
    history.add(pairs_block(0).pairs)
    found = drop_source(history.parts(pairs_block(1, ["node04"]).pairs), 0.15)
    assert found is not None
    assert found.hosts == ("node04",)


@pytest.mark.parametrize(
    ("usual", "meanwhile", "named"), [(0.1, 0.8, False), (0.1, 0.1, True), (0.5, 0.5, True)]
)
def test_a_node_whose_partners_waited_for_cores_longer_than_usual_is_not_named(
    usual: float, meanwhile: float, named: bool
) -> None:
    history = PairHistory()
    history.add(replace(pair, waited=usual) for pair in pairs_block(0).pairs)
    slow = pairs_block(1, ["node02"], 0.3).pairs
    found = drop_source(history.parts([replace(pair, waited=meanwhile) for pair in slow]), 0.7)
    assert (found is not None) is named


def test_a_link_that_lost_more_than_its_ends_waited_is_named() -> None:
    history = PairHistory()
    history.add(pairs_block(0).pairs)
    slow = [replace(pair, waited=0.03) for pair in pairs_block(1, ["node02"]).pairs]
    found = drop_source(history.parts(slow), 0.15)
    assert found is not None
    assert (found.hosts, found.direction) == (("node02",), "send")
