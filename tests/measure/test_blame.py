"""Which ranks keep the others waiting."""

from __future__ import annotations

import random

import pytest

from ncclcheck.measure.blame import slow_ranks
from tests.builders import bench_point


def blamed(*late_us: tuple[float, ...], time_us: float = 1000.0) -> list[int]:
    """The ranks blamed for points with those latenesses."""
    points = [bench_point(1 << (20 + number), late, time_us) for number, late in enumerate(late_us)]
    return [slow.rank for slow in slow_ranks(points)]


def test_nobody_is_blamed_where_all_come_together() -> None:
    assert blamed((3.0, 0.0, 5.0, 2.0), (0.0, 4.0, 1.0, 3.0)) == []


def test_the_one_that_is_far_outside_is_blamed() -> None:
    assert blamed((3.0, 0.0, 500.0, 2.0), (0.0, 4.0, 450.0, 3.0)) == [2]


def test_two_slow_ones_do_not_hide_each_other_and_the_worst_comes_first() -> None:
    assert blamed((3.0, 400.0, 0.0, 700.0)) == [3, 1]


def test_a_small_part_of_the_iteration_is_not_worth_a_word() -> None:
    assert blamed((0.0, 1.0, 2.0, 190.0)) == []


def test_a_few_microseconds_are_the_algorithms_own() -> None:
    assert blamed((0.0, 1.0, 2.0, 60.0), time_us=100.0) == []


def test_one_bad_point_of_several_is_noise() -> None:
    assert blamed((0.0, 1.0, 900.0, 2.0), (1.0, 0.0, 4.0, 2.0), (2.0, 1.0, 3.0, 0.0)) == []


def test_where_all_scatter_widely_nobody_is_outside() -> None:
    assert blamed((100.0, 300.0, 500.0, 650.0)) == []


@pytest.mark.parametrize(
    ("late", "expected"), [((0.0, 400.0), [1]), ((150.0, 400.0), []), ((0.0, 150.0), [])]
)
def test_of_two_ranks_one_must_be_five_times_the_other(
    late: tuple[float, float], expected: list[int]
) -> None:
    assert blamed(late) == expected


def test_one_rank_has_nobody_to_be_compared_with() -> None:
    assert blamed((900.0,)) == []
    assert slow_ranks([]) == ()


def test_healthy_noise_seldom_names_anybody() -> None:
    # Lateness that is as likely for every rank: a tenth of the iteration on average, over ten points.
    source = random.Random(1)  # noqa: S311 - noise, no secret
    rounds = [[tuple(source.expovariate(1 / 100.0) for _ in range(8)) for _ in range(10)] for _ in range(200)]
    assert sum(bool(blamed(*points)) for points in rounds) <= 2


def test_the_figures_say_how_late() -> None:
    (slow,) = slow_ranks(
        [bench_point(1 << 20, (10.0, 20.0, 500.0)), bench_point(1 << 21, (10.0, 20.0, 700.0))]
    )
    assert (slow.rank, slow.host, slow.late_us, slow.points) == (2, "node03", 600.0, 2)
    assert slow.late_share == pytest.approx(0.6)
    assert slow.others_share == pytest.approx(0.015)
