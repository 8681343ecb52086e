"""The spread of many iterations in little memory."""

from __future__ import annotations

from math import log

import pytest

from ncclcheck.measure.soak.spread import MOST_SAMPLES, WorstWindow, percentile_us, shortened, times_of
from ncclcheck.model.benchmarks.soak import SoakSample


def test_percentiles_come_within_two_per_cent() -> None:
    times = times_of(range(1, 10001))
    assert percentile_us(times, 50) == pytest.approx(5000, rel=0.03)
    assert percentile_us(times, 99.9) == pytest.approx(9990, rel=0.03)
    assert percentile_us({}, 50) == 0.0


def test_a_long_series_keeps_its_worst_iteration_and_its_blocks() -> None:
    samples: list[SoakSample] = []
    for number in range(20_000):
        samples = shortened([*samples, SoakSample(number, 100.0, 900.0 if number == 7777 else 110.0)])
    assert len(samples) <= MOST_SAMPLES
    assert sum(sample.blocks for sample in samples) == 20_000
    assert max(sample.worst_us for sample in samples) == 900.0
    assert {round(sample.median_us) for sample in samples} == {100}


def test_the_worst_window_is_found_and_a_gap_is_no_part_of_it() -> None:
    window = WorstWindow(60)
    for number in range(60):
        window.feed(10.0 * number, 10.0 * number + 10, log(1.5) if 30 <= number < 36 else 0.0)
    found = window.found(0.0)
    assert found is not None
    assert found.at_s == 300.0
    assert found.slower_percent == pytest.approx(50)
    window.break_off()
    window.feed(10_000, 10_010, 5.0)
    assert window.found(0.0) == found


def test_a_series_shorter_than_the_window_has_none() -> None:
    window = WorstWindow(3600)
    window.feed(0, 10, 0.0)
    assert window.found(0.0) is None
