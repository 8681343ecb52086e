"""When a series became slower, and when that was over."""

from __future__ import annotations

from math import exp, pi, sin
from random import Random

import pytest

from ncclcheck.measure.soak.drops import Drop, DropDetector
from tests.measure.soak.wandering import wandering


def found_in(medians: list[float], drop: float = 0.05) -> list[Drop]:
    detector = DropDetector(drop)
    found = [detector.feed(10.0 * at, 10.0 * at + 10, value) for at, value in enumerate(medians)]
    return [drop for drop in found if drop is not None]


def noisy(count: int, level: float, deviation: float, seed: int = 1) -> list[float]:
    random = Random(seed)  # noqa: S311 (a sample, no secret)
    return [level * (1 + random.gauss(0, deviation)) for _ in range(count)]


def test_a_drop_is_known_within_a_minute_with_its_begin_size_and_end() -> None:
    series = noisy(60, 100, 0.01) + noisy(30, 100 / 0.9, 0.01, 2) + noisy(30, 100, 0.01, 3)
    began, ended = found_in(series)
    assert began.from_s == pytest.approx(600, abs=10)
    assert began.known_s - 600 <= 60
    assert began.to_s is None
    assert ended.to_s == pytest.approx(900, abs=20)
    assert ended.part == pytest.approx(0.10, abs=0.01)
    assert ended.low <= 0.10 + 0.01 and ended.high >= 0.10 - 0.01  # noqa: PT018 (one interval)


def test_a_large_drop_begins_where_it_began_and_not_with_the_noise_before_it() -> None:
    series = [*noisy(60, 100, 0.01), 104.0, 104.0, 104.0, *noisy(30, 180, 0.01, 2)]
    (began,) = found_in(series)
    assert began.from_s == 630


def test_less_than_the_guard_is_no_drop_and_becomes_the_usual_level() -> None:
    assert found_in(noisy(60, 100, 0.005) + noisy(300, 103, 0.005, 2)) == []


def test_single_spikes_and_a_short_burst_are_no_drop() -> None:
    series = noisy(200, 100, 0.01)
    for place in (20, 60, 61, 100, 101, 102):
        series[place] *= 5
    assert found_in(series) == []


def test_a_faster_network_is_no_drop() -> None:
    assert found_in(noisy(60, 100, 0.01) + noisy(200, 70, 0.01, 2)) == []


def test_a_drop_that_lasts_stays_open_and_is_not_learned() -> None:
    detector = DropDetector(0.05)
    for at, value in enumerate(noisy(60, 100, 0.01) + noisy(500, 130, 0.01, 2)):
        detector.feed(10.0 * at, 10.0 * at + 10, value)
    assert detector.drop is not None
    assert detector.usual_us == pytest.approx(100, rel=0.02)
    assert detector.is_suspect


def test_nothing_is_judged_before_the_level_is_known() -> None:
    detector = DropDetector(0.05)
    for at in range(5):
        assert detector.feed(at, at + 1, 100.0 * (at + 1)) is None
    assert detector.usual_us is None
    assert not detector.is_suspect


@pytest.mark.parametrize("seed", range(6))
def test_a_drop_whose_interval_holds_nothing_is_not_told(seed: int) -> None:
    random = Random(seed)  # noqa: S311 (a sample, no secret)
    series = noisy(60, 100, 0.01, seed)
    series += [100.0 * (2.5 if random.random() < 0.6 else 0.97) for _ in range(60)]
    for found in found_in(series + noisy(60, 100, 0.01, seed)):
        assert found.low > 0 or found.is_withdrawn
        assert found.to_s is not None or found.low > 0


def test_a_drop_that_is_not_sure_at_its_end_is_withdrawn() -> None:
    series = noisy(60, 100, 0.01) + [118.0] * 5 + [99.0, 150.0] * 12 + [99.0] * 8
    began, ended = found_in(series)
    assert began.low > 0
    assert ended.low <= 0
    assert ended.is_withdrawn


@pytest.mark.parametrize("seed", range(20))
def test_a_drop_of_a_tenth_is_known_in_time_where_blocks_scatter_by_2_per_cent_and_are_alike(
    seed: int,
) -> None:
    noise = wandering(760, 0.9, seed)
    series = [100 * exp(0.02 * value) / (0.9 if at >= 720 else 1.0) for at, value in enumerate(noise)]
    (began,) = found_in(series)  # and no other, though little is known of the level in the first hour
    assert 7200 < began.known_s <= 7500


@pytest.mark.slow
@pytest.mark.parametrize("autocorrelation", [0.0, 0.9])
def test_two_days_of_noise_and_spikes_give_no_false_alarm(autocorrelation: float) -> None:
    random = Random(7)  # noqa: S311 (a sample, no secret)
    state, series = 0.0, []
    for number in range(17_280):
        state = autocorrelation * state + random.gauss(0, 0.01 * (1 - autocorrelation**2) ** 0.5)
        load = 1 + 0.01 * sin(2 * pi * number / 8640)
        series.append(100 * load * exp(state) * (random.uniform(1.2, 5) if random.random() < 0.02 else 1.0))
    assert found_in(series) == []


@pytest.mark.parametrize("deviation", [0.005, 0.02, 0.06])
@pytest.mark.parametrize("blocks", [6, 30])
def test_the_least_drop_that_shows_is_found_and_half_of_it_is_not(deviation: float, blocks: int) -> None:
    detector = DropDetector(0.05)
    for at, value in enumerate(noisy(100, 100, deviation)):
        detector.feed(10.0 * at, 10.0 * at + 10, value)
    least = detector.least_drop(blocks)
    assert least is not None

    def finds(drop: float) -> int:
        series = (
            noisy(100, 100, deviation) + noisy(blocks, 100 / (1 - drop), deviation, seed)
            for seed in range(2, 22)
        )
        return sum(bool(found_in(medians)) for medians in series)

    assert finds(1.3 * least) >= 18
    assert finds(0.5 * least) <= 2


def test_what_shows_is_never_less_than_was_asked_for_and_not_known_at_first() -> None:
    detector = DropDetector(0.05)
    assert detector.least_drop(6) is None
    for at in range(50):
        detector.feed(10.0 * at, 10.0 * at + 10, 100.0)
    assert detector.least_drop(3) is None
    assert detector.least_drop(6) == pytest.approx(0.05, abs=0.01)
