"""Which tests tell something, and which pairs load the trunks of the next round."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.cells import CellScale
from ncclcheck.measure.matrix.trunk_load import Loads, loading_pairs, loads_of

SCALE = CellScale(100.0, 0.01)


def round_of(number: int, rates: list[float]) -> list[PairTest]:
    return [PairTest(number, 2 * pair, 2 * pair + 1, rate, rate) for pair, rate in enumerate(rates)]


def loads(tests: Sequence[PairTest]) -> Loads:
    return loads_of(tests, SCALE)


def told(tests: Sequence[PairTest]) -> list[PairTest]:
    return [test for test, _ in loads(tests).telling()]


def test_fast_pairs_of_a_round_without_load_say_nothing_once_another_was_loaded() -> None:
    idle, loaded = round_of(1, [100.0] * 8), round_of(2, [60.0] * 6 + [100.0] * 2)
    assert told(idle) == idle
    assert told([*idle, *loaded]) == loaded


def test_one_disturbed_pair_of_many_is_no_load() -> None:
    tests = round_of(1, [100.0] * 39 + [60.0])
    assert told(tests) == tests


def test_before_any_load_the_slowest_quarter_is_kept_then_half() -> None:
    first = round_of(1, [100.0, 97.0, 99.0, 98.0, 100.0, 96.0, 99.5, 99.4])
    assert loading_pairs(loads(first)) == ((10, 11), (2, 3))
    second = round_of(2, [100.0, 97.0, 99.0, 98.0, 100.0, 96.0, 99.5, 99.4])
    assert len(loading_pairs(loads([*first, *second]))) == 4
    assert loading_pairs(loads([*first, *second, *round_of(3, [100.0] * 8)]))[:1] == ((0, 1),)


def test_pairs_that_were_slow_in_loaded_rounds_are_kept_when_the_load_is_gone() -> None:
    loaded = round_of(1, [60.0] * 4 + [100.0] * 4)
    idle = [PairTest(2, member, member + 2, 100.0, 100.0) for member in (0, 1, 4, 5, 8, 9, 12, 13)]
    assert loading_pairs(loads([*loaded, *idle])) == ((6, 7), (4, 5), (2, 3), (0, 1))


def test_where_most_pairs_are_slow_anyway_none_is_kept() -> None:
    assert loading_pairs(loads(round_of(1, [60.0] * 8))) == ()
    assert loading_pairs(loads(())) == ()
