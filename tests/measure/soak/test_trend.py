"""Whether a series becomes slower all the time."""

from __future__ import annotations

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
