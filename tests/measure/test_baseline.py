"""Losses are found, noise is not a loss: over thousands of simulated pairs of runs, and in recorded ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ncclcheck.measure.baseline import Compared, compare
from ncclcheck.measure.statistics import decide, time_us
from ncclcheck.model.bench import Point
from ncclcheck.model.bench_demands import BaselinePoint
from tests.bench_builders import bench_point

SIZES = tuple(1 << bits for bits in range(16, 26))
Draw = Callable[[random.Random, int], list[float]]


def seeded(number: int) -> random.Random:
    """The same numbers in every run of the test."""
    return random.Random(number)  # noqa: S311 (noise, no secret)


def spread(sigma: float) -> Draw:
    """Iterations that spread by sigma."""
    return lambda rng, count: [1000 * math.exp(rng.gauss(0, sigma)) for _ in range(count)]


def alike(sigma: float) -> Draw:
    """Iterations of which each resembles the one before it."""

    def draw(rng: random.Random, count: int) -> list[float]:
        state, found = 0.0, []
        for _ in range(count):
            state = 0.7 * state + rng.gauss(0, sigma * math.sqrt(1 - 0.49))
            found.append(1000 * math.exp(state))
        return found

    return draw


def disturbed(share: float) -> Draw:
    """Iterations of which a part takes several times as long: a shared core."""

    def draw(rng: random.Random, count: int) -> list[float]:
        return [
            1000 * math.exp(rng.gauss(0, 0.02)) * (rng.uniform(3, 8) if rng.random() < share else 1.0)
            for _ in range(count)
        ]

    return draw


def run(
    rng: random.Random, draw: Draw, between: float, iters: int, factors: dict[int, float] | None = None
) -> list[Point]:
    """A run over ten sizes: what all runs differ by, and the factor by which the times of some sizes are greater."""
    found = []
    for size in SIZES:
        scale = math.exp(rng.gauss(0, between)) * (factors or {}).get(size, 1.0) * size / SIZES[0]
        samples = [scale * us for us in draw(rng, iters)]
        times = time_us(samples)
        decision = decide(samples, iters=iters, spent_s=1.0, share_s=1.0)
        found.append(
            replace(
                bench_point(size, (0.0, 0.0)),
                iters=iters,
                time_us=times,
                busbw_gb_s=size / 1e3 / fmean(samples),
                unstable=decision.unstable,
                samples_us=tuple(samples),
            )
        )
    return found


def baseline(point: Point, *, with_samples: bool = True) -> BaselinePoint:
    samples = () if point.samples_us is UNSET or not with_samples else point.samples_us
    return BaselinePoint(
        point.op,
        point.size_bytes,
        point.dtype,
        point.iters,
        point.busbw_gb_s,
        point.time_us,
        point.unstable,
        samples,
    )


def compared(
    old: Sequence[Point], new: Sequence[Point], *, with_samples: bool = True
) -> tuple[Compared, ...]:
    own = new if with_samples else [replace(point, samples_us=UNSET) for point in new]
    pairs = [(now, baseline(before, with_samples=with_samples)) for now, before in zip(own, old, strict=True)]
    return compare(pairs, 0.05)


def losses(found: Sequence[Compared]) -> list[int]:
    return [one.now.size_bytes for one in found if one.verdict == "loss"]


@pytest.mark.parametrize("with_samples", [True, False])
@pytest.mark.parametrize(
    ("draw", "between"),
    [
        (spread(0.01), 0.003),
        (spread(0.05), 0.01),
        (spread(0.2), 0.02),
        (alike(0.05), 0.01),
        (disturbed(0.1), 0.01),
        (disturbed(0.5), 0.01),
    ],
)
def test_less_than_one_sound_run_of_a_hundred_raises_an_alarm(
    draw: Draw, between: float, *, with_samples: bool
) -> None:
    rng = seeded(7)
    alarms = sum(
        bool(
            losses(
                compared(run(rng, draw, between, 40), run(rng, draw, between, 40), with_samples=with_samples)
            )
        )
        for _ in range(60)
    )
    assert alarms == 0


@pytest.mark.parametrize("with_samples", [True, False])
@pytest.mark.parametrize("iters", [5, 20, 100])
def test_a_loss_of_60_percent_at_one_size_is_found_there_though_the_mean_is_fine(
    iters: int, *, with_samples: bool
) -> None:
    rng = seeded(3)
    lost = SIZES[4]
    for _ in range(20):
        old, new = run(rng, spread(0.04), 0.01, iters), run(rng, spread(0.04), 0.01, iters, {lost: 2.5})
        assert losses(compared(old, new, with_samples=with_samples)) == [lost]


def test_power_a_tenth_less_is_found_nearly_always_where_runs_repeat_to_one_percent() -> None:
    """Iterations spread by 3 %, 100 of them, runs repeat to 0.5 %: nine of ten losses of 10 % are found."""
    rng = seeded(11)
    lost = SIZES[7]
    found = sum(
        losses(
            compared(run(rng, spread(0.03), 0.005, 100), run(rng, spread(0.03), 0.005, 100, {lost: 1 / 0.9}))
        )
        == [lost]
        for _ in range(60)
    )
    assert found >= 54


def test_a_loss_at_every_size_is_found_at_every_size() -> None:
    rng = seeded(5)
    old, new = run(rng, spread(0.02), 0.005, 60), run(rng, spread(0.02), 0.005, 60, dict.fromkeys(SIZES, 1.3))
    assert losses(compared(old, new)) == list(SIZES)


def test_what_is_within_the_tolerance_is_no_loss_however_certain() -> None:
    rng = seeded(5)
    old = run(rng, spread(0.001), 0.0, 200)
    new = run(rng, spread(0.001), 0.0, 200, dict.fromkeys(SIZES, 1.04))
    assert losses(compared(old, new)) == []


def test_a_gain_is_said_and_is_no_loss() -> None:
    rng = seeded(5)
    old, new = run(rng, spread(0.02), 0.005, 60, {SIZES[2]: 2.0}), run(rng, spread(0.02), 0.005, 60)
    assert [one.verdict for one in compared(old, new)][2] == "faster"


@pytest.mark.parametrize("iters", [1, 2])
def test_too_few_iterations_are_not_known_never_passed(iters: int) -> None:
    rng = seeded(5)
    found = compared(run(rng, spread(0.02), 0.0, iters), run(rng, spread(0.02), 0.0, iters))
    assert {one.verdict for one in found} == {"not-known"}
    assert "too few iterations" in found[0].why


def test_times_that_vary_beyond_all_measure_are_not_known() -> None:
    rng = seeded(5)
    found = compared(run(rng, spread(1.5), 0.5, 20), run(rng, spread(1.5), 0.5, 20))
    assert "not-known" in {one.verdict for one in found}
    assert "loss" not in {one.verdict for one in found}


def test_a_baseline_whose_bandwidth_was_written_by_hand_counts_as_written() -> None:
    rng = seeded(5)
    old = run(rng, spread(0.02), 0.005, 60)
    new = run(rng, spread(0.02), 0.005, 60)
    better = replace(old[3], busbw_gb_s=2.5 * old[3].busbw_gb_s)
    assert losses(compared([*old[:3], better, *old[4:]], new)) == [SIZES[3]]


def test_whoever_tolerates_more_than_chance_explains_gets_an_answer() -> None:
    rng = seeded(7)
    points = run(rng, spread(0.2), 0.0, 12)
    pairs = [(point, baseline(point)) for point in points]
    assert {one.verdict for one in compare(pairs, 0.05)} == {"not-known"}
    lenient = compare(pairs, 0.9)
    assert {one.verdict for one in lenient} == {"same"}
    assert all(one.noise < 0.9 for one in lenient)
