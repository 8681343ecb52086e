"""The time of an iteration is the slowest rank's, and a loop takes as long as its iterations together."""

from __future__ import annotations

import pytest

from ncclcheck.measure.iterations import iteration_times_us


def test_an_iteration_takes_as_long_as_its_slowest_rank() -> None:
    assert iteration_times_us([[10.0, 10.0], [30.0, 30.0], [20.0, 20.0]]) == [30.0, 30.0]
    assert iteration_times_us([[5.0, 7.0]]) == [5.0, 7.0]
    assert iteration_times_us([[], []]) == []


def test_waiting_for_a_rank_that_left_late_does_not_count_twice() -> None:
    """Rank 1 leaves the first call 4 us after rank 0, which then waits 4 us for it in the second."""
    assert iteration_times_us([[10.0, 14.0], [14.0, 10.0]]) == [14.0, 10.0]


def test_the_iterations_together_take_what_the_slowest_loop_took() -> None:
    ranks = [[3.0, 1.0, 8.0, 2.0], [1.0, 6.0, 1.0, 1.0], [2.0, 2.0, 2.0, 9.0]]
    assert sum(iteration_times_us(ranks)) == pytest.approx(max(map(sum, ranks)))
    assert all(time_us >= 0 for time_us in iteration_times_us(ranks))
