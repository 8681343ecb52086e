"""The median and the spread of all values but one."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.measure.links.leave_one_out import MAD_TO_SIGMA, LeaveOneOut


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0, 7.5, 1e6]) | st.floats(0, 1e9), min_size=2, max_size=12)
)
def test_each_value_meets_the_median_and_the_spread_of_the_rest(values: list[float]) -> None:
    others = LeaveOneOut(values)
    assert len(others) == len(values) - 1
    for number, own in enumerate(values):
        rest = values[:number] + values[number + 1 :]
        middle = median(rest)
        assert others.median(own) == middle
        assert others.spread(own, 0.0) == MAD_TO_SIGMA * median(abs(value - middle) for value in rest)


def test_the_spread_is_never_less_than_the_least() -> None:
    assert LeaveOneOut([1.0, 1.0, 1.0]).spread(1.0, 0.03) == pytest.approx(0.03)


def test_who_is_alone_has_no_others() -> None:
    assert len(LeaveOneOut([])) == len(LeaveOneOut([3.0])) == 0
    assert LeaveOneOut([3.0]).median(3.0) == 0.0
