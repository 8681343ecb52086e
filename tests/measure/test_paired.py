"""The speedup of paired rounds: its interval holds the truth as often as it claims, and nothing is made of noise."""

from __future__ import annotations

import random

import pytest

from ncclcheck.measure.paired import Speedup, paired_speedup, side_of_turn


def speedup(before: list[float], after: list[float]) -> Speedup:
    found = paired_speedup(before, after)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rounds", "low", "high"), [(6, 1.0, 6.0), (8, 1.0, 8.0), (9, 2.0, 8.0), (12, 3.0, 10.0)]
)
def test_the_interval_is_of_the_exact_order_statistics(rounds: int, low: float, high: float) -> None:
    found = speedup([float(number + 1) for number in range(rounds)], [1.0] * rounds)
    assert (found.low, found.high) == (low, high)
    assert found.median == (rounds + 1) / 2


def test_too_few_rounds_prove_nothing() -> None:
    assert paired_speedup([2.0] * 5, [1.0] * 5) is None
    assert paired_speedup([2.0] * 6, [1.0] * 5) is None


@pytest.mark.parametrize("rounds", [6, 8, 9, 12, 16])
@pytest.mark.parametrize("noise", ["normal", "skewed", "heavy"])
def test_the_interval_covers_the_true_median_at_least_as_often_as_it_says(rounds: int, noise: str) -> None:
    generator = random.Random(f"{rounds}{noise}")  # noqa: S311 (a sample, no secret)

    def factor() -> float:  # its median is 1
        if noise == "normal":
            return generator.gauss(1.0, 0.05)
        if noise == "skewed":
            return generator.lognormvariate(0.0, 0.5)
        return 1.0 + generator.gauss(0, 1) / max(abs(generator.gauss(0, 1)), 0.01) * 0.001

    covered, repetitions = 0, 2000
    for _ in range(repetitions):
        found = speedup([2.0 * factor() for _ in range(rounds)], [1.0] * rounds)
        covered += found.low <= 2.0 <= found.high
    assert covered / repetitions >= 0.94


def test_a_disturbance_of_both_times_of_a_round_cancels() -> None:
    disturbed = [1.0, 5.0, 1.0, 9.0, 1.0, 3.0, 1.0, 1.0]
    found = speedup([10.0 * one for one in disturbed], [5.0 * one for one in disturbed])
    assert (found.low, found.median, found.high) == (2.0, 2.0, 2.0)
    assert found.effect == "faster"


def test_what_is_not_certain_or_too_small_to_matter_is_no_effect() -> None:
    assert speedup([0.9, 1.1, 0.8, 1.2, 0.95, 1.05, 1.3, 0.7], [1.0] * 8).effect == "no effect"
    assert speedup([1.02] * 8, [1.0] * 8).effect == "no effect"
    assert speedup([0.98] * 8, [1.0] * 8).effect == "no effect"
    assert speedup([1.1] * 8, [1.0] * 8).effect == "faster"
    assert speedup([0.8] * 8, [1.0] * 8).effect == "slower"


def test_turns_alternate_so_that_a_drift_favours_nobody() -> None:
    assert [side_of_turn(turn) for turn in range(8)] == [0, 1, 1, 0, 0, 1, 1, 0]
    drifting = [1.0 + 0.1 * turn for turn in range(48)]
    sides = [[drifting[turn] for turn in range(48) if side_of_turn(turn) == side] for side in (0, 1)]
    found = speedup(*sides)
    assert found.effect == "no effect"
