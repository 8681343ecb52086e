"""A point ends when its median is known well enough, and says so when it is not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.measure.statistics import decide, median_interval, nearest_rank, time_us


def test_the_99th_percentile_needs_a_hundred_samples() -> None:
    assert time_us([float(us) for us in range(1, 100)]).p99 is None
    assert time_us([float(us) for us in range(1, 101)]).p99 == 99.0


def test_percentiles_are_nearest_rank() -> None:
    assert nearest_rank([15, 20, 35, 40, 50], 30) == 20
    assert nearest_rank([15, 20, 35, 40, 50], 100) == 50
    spread = time_us([4.0, 1.0, 3.0, 2.0])
    assert (spread.min, spread.p50, spread.p95, spread.max, spread.mean) == (1.0, 2.5, 4.0, 4.0, 2.5)


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=300))
def test_the_spread_is_in_order(samples: list[float]) -> None:
    spread = time_us(samples)
    assert spread.min <= spread.p50 <= spread.p95 <= spread.max


def test_five_samples_tell_no_interval() -> None:
    assert median_interval([1.0] * 5) is None
    interval = median_interval([1.0] * 6)
    assert interval is not None
    assert interval.half_width == 0.0


def test_the_interval_holds_the_true_median_about_95_times_in_100() -> None:
    generator = random.Random(7)  # noqa: S311 - samples, no secrets
    hits = 0
    for _ in range(400):
        interval = median_interval([generator.expovariate(1.0) for _ in range(41)])
        assert interval is not None
        hits += interval.low <= 0.6931 <= interval.high
    assert 0.92 <= hits / 400 <= 1.0


def test_a_steady_point_stops_as_soon_as_it_is_precise() -> None:
    decision = decide([100.0, 100.5, 99.8, 100.1, 100.2, 99.9], iters=None, spent_s=0.1, share_s=5)
    assert not decision.go_on
    assert decision.unstable is None


def test_a_noisy_point_goes_on_until_its_share_is_spent_and_then_says_so() -> None:
    noisy = [100.0, 200.0] * 10
    assert decide(noisy, iters=None, spent_s=0.1, share_s=5).go_on
    spent = decide(noisy, iters=None, spent_s=5.1, share_s=5)
    assert not spent.go_on
    assert spent.unstable is not None
    assert "20 iterations" in spent.unstable
    assert "5.0 s" in spent.unstable


def test_a_given_number_of_iterations_is_made_whatever_they_show() -> None:
    assert decide([1.0] * 9, iters=10, spent_s=100, share_s=1).go_on
    assert not decide([1.0] * 10, iters=10, spent_s=0, share_s=1).go_on


@pytest.mark.parametrize("iters", [1, 5])
def test_too_few_iterations_are_never_called_stable(iters: int) -> None:
    decision = decide([1.0] * iters, iters=iters, spent_s=0, share_s=1)
    assert decision.unstable == f"too few iterations ({iters}) to tell how precise the median is"
