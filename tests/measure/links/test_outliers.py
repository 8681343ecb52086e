"""Slow senders, receivers and pairs, told from the nodes that only suffer from them."""

from __future__ import annotations

import pytest

from ncclcheck.measure.links.outliers import LatePairs, late_pairs, slow_ends
from ncclcheck.measure.links.rounds import plan_rounds


def pairs(nodes: int) -> list[tuple[str, str]]:
    return [
        (str(one), str((one + shift) % nodes))
        for one in range(nodes)
        for shift in plan_rounds(nodes, 1).shifts
    ]


def measured(nodes: int, sends: dict[str, float], receives: dict[str, float]) -> dict[tuple[str, str], float]:
    """A transfer is as fast as the slower of its ends; healthy ends manage 10, give or take."""
    return {
        (one, pair): min(sends.get(one, 10.0), receives.get(pair, 10.0)) * (0.97 + 0.02 * (number % 4))
        for number, (one, pair) in enumerate(pairs(nodes))
    }


SIZES = pytest.mark.parametrize("nodes", [3, 4, 5, 8, 64])


@SIZES
def test_equal_nodes_are_not_told_apart(nodes: int) -> None:
    assert slow_ends(measured(nodes, {}, {})) == ((), ())


@SIZES
def test_a_slow_sender_is_named_and_its_receivers_are_not(nodes: int) -> None:
    ends, rest = slow_ends(measured(nodes, {"1": 3.0}, {}))
    assert [(end.host, end.end) for end in ends] == [("1", "sender")]
    assert ends[0].median == pytest.approx(3.0, rel=0.05)
    assert ends[0].usual == pytest.approx(10.0, rel=0.05)
    assert rest == ()


@SIZES
def test_a_slow_receiver_is_named_and_its_senders_are_not(nodes: int) -> None:
    ends, rest = slow_ends(measured(nodes, {}, {"2": 0.1}))
    assert [(end.host, end.end) for end in ends] == [("2", "receiver")]
    assert rest == ()


@SIZES
def test_a_node_that_is_slow_both_ways_is_named_for_both(nodes: int) -> None:
    ends, rest = slow_ends(measured(nodes, {"0": 1.0}, {"0": 1.0}))
    assert sorted((end.host, end.end) for end in ends) == [("0", "receiver"), ("0", "sender")]
    assert rest == ()


@pytest.mark.parametrize("nodes", [4, 8, 64])
def test_a_slow_sender_and_a_slow_receiver_are_both_named(nodes: int) -> None:
    ends, _ = slow_ends(measured(nodes, {"1": 2.0}, {"3": 4.0}))
    assert {(end.host, end.end) for end in ends} == {("1", "sender"), ("3", "receiver")}


@SIZES
def test_a_single_slow_pair_is_a_pair(nodes: int) -> None:
    values = measured(nodes, {}, {})
    values["1", "2"] = 2.0
    ends, (pair,) = slow_ends(values)
    assert ends == ()
    assert (pair.pair, pair.value) == (("1", "2"), 2.0)


@SIZES
def test_a_node_that_is_faster_than_all_others_makes_nobody_slow(nodes: int) -> None:
    assert slow_ends(measured(nodes, {str(one): 5.0 for one in range(1, nodes)}, {})) == ((), ())


def test_what_is_slow_because_its_acknowledgements_wait_is_no_slow_pair() -> None:
    values = measured(4, {"1": 0.1}, {})
    values["0", "1"] = 3.0
    ends, rest = slow_ends(values)
    assert [(end.host, end.end) for end in ends] == [("1", "sender")]
    assert rest == ()


def test_a_pair_that_was_measured_once_needs_a_greater_loss() -> None:
    values = measured(8, {}, {})
    values["1", "2"] = 6.0
    assert slow_ends(values) == ((), ())


def test_a_node_far_below_is_named_however_much_the_others_scatter() -> None:
    """Seen on a machine whose CPU was the limit of all transfers but those of the slow sender."""
    values = {
        ("1", "2"): 1.33,
        ("2", "3"): 0.096,
        ("3", "1"): 21.1,
        ("1", "3"): 12.9,
        ("2", "1"): 0.0955,
        ("3", "2"): 0.99,
    }
    ends, rest = slow_ends(values)
    assert {end.host for end in ends} == {"2"}
    assert "sender" in {end.end for end in ends}
    assert rest == ()


def test_what_the_cpu_limited_is_not_called_slow() -> None:
    values = measured(4, {"1": 3.0}, {})
    assert slow_ends(values, frozenset(pair for pair in values if pair[0] == "1")) == ((), ())


def test_two_nodes_are_not_told_apart() -> None:
    assert slow_ends({("0", "1"): 10.0, ("1", "0"): 1.0}) == ((), ())


def test_where_everything_scatters_nothing_stands_out() -> None:
    values = {pair: 4.0 + (7 * number) % 13 for number, pair in enumerate(pairs(8))}
    ends, _ = slow_ends(values)
    assert ends == ()


def round_trips(nodes: int, late: dict[str, float]) -> dict[tuple[str, str], float]:
    return {(one, other): 50.0 + late.get(one, 0) + late.get(other, 0) for one, other in pairs(nodes)}


@SIZES
def test_the_node_in_all_late_pairs_is_named(nodes: int) -> None:
    values = round_trips(nodes, {"1": 400.0})
    (late,) = late_pairs(values, values)
    assert (late.host, late.median_us, late.usual_us) == ("1", 450.0, 50.0)
    assert late.pairs == tuple(sorted(pair for pair in values if "1" in pair))


@SIZES
def test_equal_round_trips_are_silent(nodes: int) -> None:
    values = round_trips(nodes, {"1": 60.0})
    assert late_pairs(values, values) == ()


def test_a_median_that_only_a_busy_cpu_made_is_no_late_pair() -> None:
    values = round_trips(4, {"1": 400.0})
    assert late_pairs(values, round_trips(4, {})) == ()


def test_one_late_pair_has_no_node_to_blame() -> None:
    values = round_trips(8, {})
    values["1", "2"] = 900.0
    assert late_pairs(values, values) == (LatePairs(None, 900.0, 50.0, (("1", "2"),)),)


def test_two_nodes_have_nothing_to_compare_with() -> None:
    assert late_pairs({("0", "1"): 50.0, ("1", "0"): 5000.0}, {}) == ()


def test_a_slow_end_is_named_though_the_cpu_was_busy_in_one_of_its_transfers() -> None:
    values = measured(4, {"2": 3.0}, {"2": 3.0})
    ends, rest = slow_ends(values, frozenset({("2", "1"), ("1", "2")}))
    assert sorted((end.host, end.end) for end in ends) == [("2", "receiver"), ("2", "sender")]
    assert [end.pairs for end in ends if end.end == "sender"] == [(("2", "0"), ("2", "3"))]
    assert rest == ()


def test_a_fast_transfer_clears_an_end_even_if_the_cpu_was_busy_in_it() -> None:
    values = {**measured(4, {"2": 1.0}, {}), ("2", "1"): 10.0}
    ends, rest = slow_ends(values, frozenset({("2", "1")}))
    assert ends == ()
    assert [pair.pair for pair in rest] == [("2", "0"), ("2", "3")]


def test_no_pair_is_blamed_where_an_end_of_it_was_fast_with_nobody() -> None:
    values = measured(4, {"2": 1.0}, {})
    assert slow_ends(values, frozenset({("2", "1"), ("2", "0")})) == ((), ())
