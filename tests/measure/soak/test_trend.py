"""Whether a series becomes slower all the time."""

from __future__ import annotations

from math import cos, exp, pi
from random import Random

import pytest

from ncclcheck.measure.soak.trend import trend
from ncclcheck.model.benchmarks.soak import SoakSample


def series(levels: list[float]) -> list[SoakSample]:
    random = Random(3)  # noqa: S311 (a sample, no secret)
    return [
        SoakSample(60.0 * number, level * (1 + random.gauss(0, 0.01)), 0.0)
        for number, level in enumerate(levels)
    ]


def test_a_slow_loss_of_speed_is_found_with_its_size_per_hour() -> None:
    found = trend(series([100 * (1 + 0.2 * number / 240) for number in range(240)]), 0.05)
    assert found is not None
    assert found.part == pytest.approx(1 - 1 / 1.2, abs=0.02)
    assert found.per_hour == pytest.approx(found.part / 4, rel=0.15)


def test_noise_a_step_a_short_series_and_a_gain_are_no_trend() -> None:
    assert trend(series([100.0] * 240), 0.05) is None
    assert trend(series([100.0] * 120 + [130.0] * 120), 0.05) is None
    assert trend(series([100 * (1 + number / 100) for number in range(30)]), 0.05) is None
    assert trend(series([150 - number / 5 for number in range(240)]), 0.05) is None


def test_the_rise_of_a_daily_load_is_no_trend_and_a_loss_over_days_is() -> None:
    random = Random(3)  # noqa: S311 (a sample, no secret)
    day_s = 86_400.0

    def series(hours: float, swing: float, loss_a_day: float) -> list[SoakSample]:
        times = [number * 60.0 for number in range(int(hours * 60))]
        return [
            SoakSample(
                at_s,
                1000
                * (1 - swing * cos(2 * pi * at_s / day_s))
                * exp(loss_a_day * at_s / day_s)
                * random.gauss(1, 0.01),
                2000.0,
            )
            for at_s in times
        ]

    assert trend(series(8.5, 0.05, 0.0), 0.05) is None
    assert trend(series(12.0, 0.05, 0.0), 0.05) is None
    assert trend(series(48.0, 0.0, 0.05), 0.05) is not None
    assert trend(series(3.0, 0.0, 24 * 0.04), 0.05) is not None
