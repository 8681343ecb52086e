"""When a round is over: the wait follows what finished in that round, and the rounds before."""

from __future__ import annotations

from ncclcheck.bench.pairs.round_limit import Finished, round_limit_s
from ncclcheck.timeouts import ROUND_ALONE_S, ROUND_FIRST_S, ROUND_LEAST_S, ROUND_START_S

QUICK = Finished(1.0, 0.9, 0.1)
USUAL = Finished(2.4, 2.3, 0.25)


def test_before_anything_finished_the_first_round_has_its_own_limit() -> None:
    assert round_limit_s((), 16, ()) == round_limit_s([QUICK], 16, ()) == ROUND_FIRST_S
    assert round_limit_s((), 2, ()) == ROUND_ALONE_S


def test_after_half_of_the_pairs_the_others_have_some_transfers_more() -> None:
    assert round_limit_s([QUICK, QUICK], 4, ()) == QUICK.at_s + ROUND_LEAST_S
    slow = Finished(9.0, 8.0, 0.9)
    assert round_limit_s([QUICK, slow, slow], 4, ()) == 9.0 + 8 * 0.9


def test_a_hang_costs_seconds_and_the_start_of_the_others_is_not_counted_eight_times() -> None:
    assert round_limit_s([USUAL] * 14, 16, ()) - USUAL.at_s < 3


def test_where_the_start_took_long_a_hang_costs_no_more_than_some_seconds_of_it() -> None:
    crowded = Finished(12.0, 11.9, 0.25)
    assert round_limit_s([crowded] * 14, 16, ()) == 12.0 + ROUND_START_S


def test_in_later_rounds_the_earlier_ones_tell_how_long_a_pair_takes() -> None:
    assert round_limit_s((), 2, [USUAL] * 8) < 5


def test_a_round_of_longer_tests_is_not_over_before_they_can_be() -> None:
    longer_s = 2 * (31 - 3) * USUAL.transfer_s
    assert round_limit_s((), 2, [USUAL] * 8, 31) == round_limit_s((), 2, [USUAL] * 8) + longer_s
