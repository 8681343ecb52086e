"""When a round is over: the wait follows what finished in that round, and the rounds before."""

from __future__ import annotations

from ncclcheck.bench.pairs.round_limit import Finished, round_limit_s, start_limit_s
from ncclcheck.timeouts import PAIRS_PATIENCE_S, PAIRS_READY_S, ROUND_ALONE_S, ROUND_FIRST_S, ROUND_LEAST_S

QUICK = Finished(1.0, 0.9, 0.1)
USUAL = Finished(2.4, 2.3, 0.25)


def test_before_anything_finished_the_first_round_has_its_own_limit() -> None:
    assert round_limit_s((), 16, ()) == round_limit_s([QUICK], 16, ()) == ROUND_FIRST_S
    assert round_limit_s((), 2, ()) == ROUND_ALONE_S


def test_after_half_of_the_pairs_the_others_have_some_transfers_more() -> None:
    assert round_limit_s([QUICK, QUICK], 4, ()) == QUICK.at_s + ROUND_LEAST_S
    slow = Finished(9.0, 8.0, 0.9)
    assert round_limit_s([QUICK, slow, slow], 4, ()) == 9.0 + max(8 * 0.9, 8.0)


def test_a_hang_costs_seconds_and_the_start_of_the_others_is_not_counted_eight_times() -> None:
    assert round_limit_s([USUAL] * 14, 16, ()) - USUAL.at_s < 3


def test_in_later_rounds_the_earlier_ones_tell_how_long_a_pair_takes() -> None:
    assert round_limit_s((), 2, [USUAL] * 8) < 5


def test_a_node_that_does_not_start_is_given_up_after_as_long_as_the_others_took() -> None:
    assert start_limit_s([1.0], 4) == PAIRS_READY_S
    assert start_limit_s([1.0, 2.0], 4) == 2.0 + PAIRS_PATIENCE_S
    assert start_limit_s([20.0, 25.0], 4) == 50.0
    assert start_limit_s([20.0, 45.0], 4) == PAIRS_READY_S
