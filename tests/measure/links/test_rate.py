"""The rate of data that comes in portions."""

from __future__ import annotations

import pytest

from ncclcheck.measure.links.rate import rate_in


def portions(size: int, every_s: float, count: int, begin: float = 0.0) -> list[tuple[float, int]]:
    return [(begin + number * every_s, size) for number in range(count)]


def test_a_steady_flow_has_its_rate() -> None:
    assert rate_in(portions(1000, 0.001, 200), 0.05, 0.15) == pytest.approx(1e6, rel=0.01)


@pytest.mark.parametrize("begin", [0.0, 0.001, 0.004, 0.007, 0.0099])
def test_where_the_window_cuts_portions_hardly_counts(begin: float) -> None:
    """64 KiB every 5 ms of each of four streams at once: 100 Mbit/s and a bit."""
    flow = sorted(portions(65536, 0.02, 20, begin) * 4)
    assert rate_in(flow, 0.05, 0.15) == pytest.approx(65536 * 4 / 0.02, rel=0.06)


def test_a_time_without_data_counts() -> None:
    stopped = portions(1000, 0.001, 100)
    assert rate_in(stopped, 0.05, 0.15) < 0.7e6


def test_nothing_in_the_window_is_nothing() -> None:
    assert rate_in([], 0.0, 1.0) == 0.0
    assert rate_in(portions(1000, 0.001, 10), 0.5, 1.0) == 0.0
    assert rate_in(portions(1000, 0.001, 10), 0.5, 0.5) == 0.0
