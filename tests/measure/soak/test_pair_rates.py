"""Whom a drop comes from."""

from __future__ import annotations

import pytest

from ncclcheck.measure.soak.pair_rates import PairHistory, whom
from ncclcheck.model.benchmarks.soak import SoakPair
from tests.soak_builders import HOSTS, pairs_block


def parts(slow: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    return {(a, b): slow.get((a, b), 1.0) for a in HOSTS for b in HOSTS if a != b}


def test_a_node_that_sends_less_is_named_with_its_direction() -> None:
    found = whom(parts({("node02", host): 0.85 for host in HOSTS if host != "node02"}), 0.15)
    assert found is not None
    assert (found.hosts, found.direction) == (("node02",), "send")
    assert found.part == pytest.approx(0.15)


def test_a_node_that_receives_less_and_one_that_does_both() -> None:
    receives = {(host, "node03"): 0.8 for host in HOSTS if host != "node03"}
    found = whom(parts(receives), 0.2)
    assert found is not None
    assert (found.hosts, found.direction) == (("node03",), "receive")
    both = {**receives, **{("node03", host): 0.8 for host in HOSTS if host != "node03"}}
    found = whom(parts(both), 0.2)
    assert found is not None
    assert (found.hosts, found.direction) == (("node03",), "both")


def test_a_single_path_is_named_by_both_ends() -> None:
    found = whom(parts({("node01", "node04"): 0.7}), 0.1)
    assert found is not None
    assert (found.hosts, found.direction) == (("node01", "node04"), None)


def test_two_nodes_are_named_as_a_path() -> None:
    found = whom({("a", "b"): 0.8, ("b", "a"): 1.0}, 0.2)
    assert found is not None
    assert found.hosts == ("a", "b")


def test_where_all_are_slow_alike_or_none_is_nobody_is_named() -> None:
    assert whom(parts({}), 0.1) is None
    assert whom(dict.fromkeys(parts({}), 0.8), 0.2) is None
    assert whom({}, 0.2) is None


def test_a_rate_is_compared_with_the_same_pair_before_and_else_with_all() -> None:
    history = PairHistory()
    assert history.parts([SoakPair("a", "b", 1.0)]) == {}
    history.add([SoakPair("a", "b", 2.0), SoakPair("b", "a", 1.0)])
    now = history.parts([SoakPair("a", "b", 1.0), SoakPair("a", "c", 1.5)])
    assert now == {("a", "b"): 0.5, ("a", "c"): 1.0}


def test_the_pairs_of_a_block_name_their_sender() -> None:
    history = PairHistory()
    history.add(pairs_block(0).pairs)
    found = whom(history.parts(pairs_block(1, ["node04"]).pairs), 0.15)
    assert found is not None
    assert found.hosts == ("node04",)
