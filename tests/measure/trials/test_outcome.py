"""What a race says of each environment."""

from __future__ import annotations

import math

import pytest

from ncclcheck.measure.trials.outcome import _median
from tests.trial_builders import FAST, SAME, tried


def test_the_faster_of_two_winners_is_advised_and_the_other_is_told_as_second() -> None:
    result = tried(FAST, {"GLOO_SOCKET_IFNAME": "fast", "TORCH_GLOO_LAZY_INIT": "1"})
    assert result.trials is not None
    assert sorted(trial.outcome for trial in result.trials[2:]) == ["advised", "second best"]


def test_every_environment_has_the_times_of_its_rounds_for_a_replay() -> None:
    result = tried(SAME)
    assert result.trials is not None
    assert result.race is not None
    assert [len(trial.rounds) for trial in result.trials] == [result.race.rounds] * 3
    assert all(len(row.times_us) == 2 for row in result.trials[0].rounds)


def test_few_rounds_have_a_ratio_and_no_interval() -> None:
    result = tried(SAME, interrupted_after=1 << 30, broken_after=13)
    assert result.trials is not None
    effect = result.trials[2].per_size[0]
    assert effect.ratio is not None
    assert (effect.low, effect.effect) == (None, "undecided")


def test_the_ratio_of_few_rounds_is_the_middle_one_and_of_an_even_number_between_the_two() -> None:
    assert _median([0.0, math.log(1.21)]) == pytest.approx(1.1)
    assert _median([0.0, 0.0, 1.0]) == 1.0
    assert _median([]) is None


def test_a_setting_that_left_early_says_how_sure_that_is() -> None:
    result = tried(SAME)
    assert result.trials is not None
    assert "95 % for each size by itself" in result.trials[2].reason
