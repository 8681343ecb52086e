"""About how long a benchmark will still take."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.measure.remaining import seconds_left
from ncclcheck.model.bench import BenchPlan

PLAN = BenchPlan(
    "gloo", ("all_reduce",), (1 << 20, 1 << 20, 1 << 20, 1 << 20), "float32", 5, None, 20.0, True
)
FIXED = replace(PLAN, iters=100)


def test_with_a_budget_the_rest_takes_as_long_as_the_points_before() -> None:
    assert seconds_left(PLAN, 0, 0, 1.5) == 18.5
    assert seconds_left(PLAN, 2, 0, 3.0) == 3.0
    assert seconds_left(PLAN, 1, 0, 15.0) == 5.0  # of the budget
    assert seconds_left(PLAN, 1, 0, 25.0) == 0.0
    assert seconds_left(PLAN, 4, 0, 9.0) is None


def test_with_fixed_iterations_the_time_goes_with_the_bytes() -> None:
    assert seconds_left(FIXED, 0, 0, 2.0) is None
    assert seconds_left(FIXED, 1, 0, 2.0) == pytest.approx(6.0)
    assert seconds_left(FIXED, 1, 50, 3.0) == pytest.approx(5.0)
    growing = replace(FIXED, sizes_bytes=(1 << 20, 1 << 30))
    assert (seconds_left(growing, 1, 0, 1.0) or 0.0) > 500
