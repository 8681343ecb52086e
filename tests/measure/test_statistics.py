"""A point ends when its median is known well enough, and says so when it is not."""

from __future__ import annotations

import random
import re
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.measure.statistics import decide, mean_interval, median_interval, nearest_rank, time_us


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


def test_a_steady_point_stops_once_it_is_precise_and_has_met_what_else_the_machine_does() -> None:
    steady = [100.0, 100.5, 99.8, 100.1, 100.2, 99.9]
    assert decide(steady, iters=None, spent_s=0.1, share_s=5).go_on
    assert not decide(steady, iters=None, spent_s=0.1, share_s=0.3).go_on
    decision = decide(steady, iters=None, spent_s=0.3, share_s=5)
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


@given(st.lists(st.floats(90.0, 110.0), min_size=6, max_size=40))
def test_figures_that_are_called_imprecise_are_never_printed_as_precise(samples: list[float]) -> None:
    told = decide(samples, iters=6, spent_s=0, share_s=1).unstable
    if told is not None:
        figures = [float(one) for one in re.findall(r"[-+]([0-9.]+)%", told)]
        assert len(figures) == 2
        assert max(figures) > 2.0
        assert "2 % is required" in told


def test_a_given_number_of_iterations_is_made_whatever_they_show() -> None:
    assert decide([1.0] * 9, iters=10, spent_s=100, share_s=1).go_on
    assert not decide([1.0] * 10, iters=10, spent_s=0, share_s=1).go_on


@pytest.mark.parametrize("iters", [1, 5])
def test_too_few_iterations_are_never_called_stable(iters: int) -> None:
    decision = decide([1.0] * iters, iters=iters, spent_s=0, share_s=1)
    assert decision.unstable == f"too few iterations ({iters}) to tell how precise the median is"


def test_the_interval_of_a_mean_is_never_narrower_than_runs_differ() -> None:
    interval = mean_interval([100.0] * 50)
    assert interval is not None
    assert interval.middle == 100.0
    assert 0.02 < interval.half_width < 0.03
    assert mean_interval([100.0] * 5) is None


def test_the_interval_of_a_mean_holds_that_of_a_repeat_also_where_samples_come_in_waves() -> None:
    """Samples that follow each other are alike: the interval goes by blocks of them."""
    generator, hits = random.Random(1), 0  # noqa: S311
    for _ in range(300):
        waves = [generator.gauss(100.0, 8.0) for _ in range(20)]
        interval = mean_interval([wave + generator.gauss(0.0, 1.0) for wave in waves for _ in range(10)])
        assert interval is not None
        again = fmean(generator.gauss(100.0, 8.0) for _ in range(20))
        hits += interval.low <= again <= interval.high
    assert hits >= 0.93 * 300


def test_a_mean_of_wild_samples_stays_above_nothing() -> None:
    interval = mean_interval([1.0, 1.0, 1.0, 1.0, 1.0, 1000.0])
    assert interval is not None
    assert 0 < interval.low < interval.middle < interval.high


def test_a_point_with_too_few_samples_to_tell_anything_may_take_twice_its_share() -> None:
    assert decide([1.0] * 5, iters=None, spent_s=1.5, share_s=1).go_on
    assert not decide([1.0] * 5, iters=None, spent_s=2.5, share_s=1).go_on
    assert not decide([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], iters=None, spent_s=1.5, share_s=1).go_on
