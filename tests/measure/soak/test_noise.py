"""How far a few blocks go by chance."""

from __future__ import annotations

from statistics import mean, pstdev

import pytest

from ncclcheck.measure.soak.noise import mean_variance, noise_of, step_variance
from tests.measure.soak.wandering import wandering

ALL = pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])


@ALL
def test_the_correlation_of_neighbours_is_found_also_among_spikes(correlation: float) -> None:
    series = wandering(5000, correlation)
    for place in range(0, 5000, 50):
        series[place] += 40
    noise = noise_of(series, 1.0, 3.0)
    assert noise.least - 0.04 <= correlation <= noise.most
    assert noise.most - noise.least < 0.1


def test_values_that_are_all_the_same_have_no_noise_to_speak_of() -> None:
    assert noise_of([0.0] * 720, 0.01, 0.03).level_error(720) == pytest.approx(
        0.01 * (2 / 720) ** 0.5, rel=0.1
    )


@ALL
@pytest.mark.parametrize("count", [6, 8])
def test_means_and_steps_scatter_as_an_autoregressive_process_says(count: int, correlation: float) -> None:
    series = wandering(60_000, correlation)
    places = range(count, len(series) - count, count)
    means = [mean(series[at : at + count]) for at in places]
    steps = [mean(series[at : at + count]) - mean(series[at - count : at]) for at in places]
    assert pstdev(means) == pytest.approx(mean_variance(count, correlation) ** 0.5, rel=0.05)
    assert pstdev(steps) == pytest.approx(step_variance(count, correlation) ** 0.5, rel=0.05)


def test_few_values_that_are_alike_leave_the_level_open() -> None:
    few, many = (noise_of(wandering(count, 0.9), 1.0, 3.0).level_error(16) for count in (24, 720))
    assert few > 2 * many
    alone = noise_of(wandering(24, 0.0), 1.0, 3.0).level_error(16)
    assert alone < few / 2


def test_steps_are_known_before_the_level_is() -> None:
    noise = noise_of(wandering(64, 0.9), 1.0, 3.0)
    assert noise.step_error(6) < noise.level_error(6) / 2
