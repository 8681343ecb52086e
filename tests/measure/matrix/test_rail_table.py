"""Rails: a rate for each, slow ends, and cables that were swapped."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.rail_table import SwappedRails, rail_table, shift_round

RAILS = 4
RateOf = Callable[[int, int], int]  # member, GPU -> the rail that it is on


def met(number: int, first: int, second: int, on_rail: RateOf, shift: int = 0) -> PairTest:
    """Two GPUs on the same rail reach 400, others 200."""
    rails = tuple(
        (400.0, 400.0) if on_rail(first, gpu) == on_rail(second, (gpu + shift) % RAILS) else (200.0, 200.0)
        for gpu in range(RAILS)
    )
    slowest = min(rate for rates in rails for rate in rates)
    return PairTest(number, first, second, slowest, slowest, rails=rails, rail_shift=shift)


def straight(on_rail: RateOf, members: int = 4) -> list[PairTest]:
    return [met(number, *pair, on_rail) for number, pair in enumerate(combinations(range(members), 2), 1)]


def in_order(_member: int, gpu: int) -> int:
    return gpu


def swapped(member: int, gpu: int) -> int:
    return {1: 3, 3: 1}.get(gpu, gpu) if member == 2 else gpu


def test_rails_in_order_are_measured_across_once() -> None:
    tests = straight(in_order)
    found = rail_table(tests)
    assert found is not None
    assert [(rail.number, rail.rate_gbit_s, rail.slow) for rail in found.rails] == [
        (number, 400.0, ()) for number in range(RAILS)
    ]
    assert found.cross_gbit_s is None
    shift, pairs = shift_round(tests, range(4))
    assert (shift, pairs) == (1, ((0, 1), (2, 3)))
    tests += [met(9, *pair, in_order, shift) for pair in pairs]
    found = rail_table(tests)
    assert found is not None
    assert (found.cross_gbit_s, found.swapped) == (200.0, ())
    assert shift_round(tests, range(4)) == (0, ())


def test_swapped_cables_are_named_with_both_rails() -> None:
    tests = straight(swapped)
    number = 9
    while (planned := shift_round(tests, range(4)))[1]:
        shift, pairs = planned
        tests += [met(number, *pair, swapped, shift) for pair in pairs]
        number += 1
    found = rail_table(tests)
    assert found is not None
    assert [rail.slow for rail in found.rails] == [(), (2,), (), (2,)]
    assert found.swapped == (SwappedRails(2, 1, 3), SwappedRails(2, 3, 1))


def test_one_rail_has_no_table_and_rails_that_do_not_meet_have_no_rate() -> None:
    assert rail_table([PairTest(1, 0, 1, 9.0, 9.0)]) is None
    assert shift_round([PairTest(1, 0, 1, 9.0, 9.0)], range(4)) == (0, ())
    tests = [*straight(in_order), PairTest(9, 0, 1, outcome="unreachable", rail_shift=1)]
    found = rail_table(tests)
    assert found is not None
    assert found.cross_gbit_s == 0.0


def test_of_two_nodes_no_end_is_slow() -> None:
    (both,) = straight(swapped, 2)
    (crossed,) = [met(1, 1, 2, swapped)]
    assert rail_table([both, crossed]) is not None
    table = rail_table([crossed])
    assert table is not None
    assert all(not rail.slow for rail in table.rails)
