"""Races over scripted times: no false advice, a real gain is found, and who loses elsewhere is refused."""

from __future__ import annotations

import math

import pytest

from ncclcheck.measure.trials.race import (
    Rules,
    effect_of,
    is_confirmed,
    log_ratios,
    standing,
    twin_differs,
)
from ncclcheck.measure.trials.signed_rank import Shift
from tests.measure.trials.world import World, play

NOTHING = (1.0,)


def test_the_looks_begin_where_an_interval_can_exclude_chance() -> None:
    assert Rules(2, 1).looks[0] == 10
    assert Rules(17, 1).looks[0] == 12
    assert Rules(17, 4).looks[0] > Rules(17, 1).looks[0]


def test_the_figure_of_a_round_is_positive_where_the_arm_is_faster() -> None:
    assert log_ratios((110.0, 100.0), (100.0, 100.0)) == pytest.approx((math.log(1.1), 0.0))


@pytest.mark.parametrize(
    ("shift", "effect"),
    [
        (Shift(0.09, 0.05, 0.12), "better"),
        (Shift(0.02, 0.01, 0.03), "undecided"),  # proven, and less than the gain that counts
        (Shift(0.0, -0.02, 0.02), "none"),
        (Shift(-0.09, -0.12, -0.05), "worse"),
        (Shift(0.05, -0.01, 0.11), "undecided"),
        (None, "undecided"),
    ],
)
def test_the_effect_at_a_point(shift: Shift | None, effect: str) -> None:
    assert effect_of(shift, 0.03) == effect


def test_a_gain_is_decided_at_a_look_only() -> None:
    rounds, rules = [(0.1 + 0.001 * number,) for number in range(12)], Rules(2, 1)
    assert standing(rounds, rules, may_win=True) == "candidate"
    assert standing(rounds, rules, may_win=False) == "racing"
    assert standing(rounds[:5], rules, may_win=True) == "racing"


def test_who_gains_at_one_size_and_loses_at_another_is_refused() -> None:
    rounds = [(0.1 + 0.001 * number, -0.05 + 0.001 * number) for number in range(16)]
    assert standing(rounds, Rules(2, 2), may_win=True) == "refused"
    # Its gain needs the proof of all settings together, which counts four looks and not every round.
    assert standing(rounds, Rules(2, 2), may_win=False) == "racing"


def test_who_cannot_reach_the_gain_leaves() -> None:
    assert standing([(0.001 * number,) for number in range(8)], Rules(2, 1), may_win=False) == "no gain"
    assert standing([(-0.1 - 0.001 * number,) for number in range(8)], Rules(2, 1), may_win=False) == "slower"


def test_a_twin_that_differs_is_seen() -> None:
    assert twin_differs([(0.02 + 0.001 * number,) for number in range(12)], Rules(2, 1))
    assert not twin_differs([(0.02 * (-1) ** number,) for number in range(12)], Rules(2, 1))


def test_a_winner_is_confirmed_where_it_won_and_only_if_it_loses_nowhere() -> None:
    again = [(0.1 + 0.001 * number, 0.0) for number in range(6)]
    assert is_confirmed(again, [0])
    assert not is_confirmed([(-value, 0.0) for value, _ in again], [0])
    assert not is_confirmed([(value, -value) for value, _ in again], [0])
    assert not is_confirmed(again[:3], [0])


@pytest.mark.parametrize("noise", [0.01, 0.06])
def test_equal_settings_are_never_advised(noise: float) -> None:
    played = [play(World((NOTHING,) * 3, noise), seed) for seed in range(30)]
    assert sum(race.advised is not None for race in played) <= 1


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_ten_per_cent_are_found_beside_settings_that_do_nothing(noise: float) -> None:
    played = [play(World((NOTHING, (1.1,), NOTHING), noise), seed) for seed in range(20)]
    assert sum(race.advised == 1 for race in played) >= 19
    assert all(race.advised in (1, None) for race in played)


def test_a_drift_of_the_machine_changes_nothing() -> None:
    played = [play(World((NOTHING, (1.1,)), 0.02, drift=0.5), seed) for seed in range(20)]
    assert sum(race.advised == 1 for race in played) >= 19


def test_a_machine_on_which_equal_is_not_equal_advises_nothing() -> None:
    played = play(World(((1.1,),), 0.01, twin=1.05), 1)
    assert played.twin_differs
    assert played.advised is None
