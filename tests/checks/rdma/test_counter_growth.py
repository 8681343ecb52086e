"""How counters grow, wrap, are reset, and stop at their largest value."""

from __future__ import annotations

import pytest

from ncclcheck.checks.rdma._counter_growth import Growth, growth

TOP32, TOP64 = 1 << 32, 1 << 64


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("symbol_error", 5, 5, Growth(0)),
        ("symbol_error", 5, 9, Growth(4)),
        ("out_of_sequence", TOP32 - 3, 4, Growth(7)),
        ("np_cnp_sent", TOP64 - 3, 4, Growth(7)),
        ("np_cnp_sent", TOP64 - 1, TOP64 - 1, Growth(0)),
        ("out_of_sequence", 1000, 4, Growth(4, was_reset=True)),
        ("out_of_sequence", 1000, 0, Growth(0, was_reset=True)),
        ("link_downed", 250, 255, Growth(5, is_full=True)),
        ("link_downed", 255, 255, Growth(0, is_full=True)),
        ("link_downed", 255, 2, Growth(2, was_reset=True)),  # such a counter does not wrap
        ("symbol_error", 255, 255, Growth(0)),
        ("symbol_error", 0xFFFF, 0xFFFF, Growth(0, is_full=True)),
        ("excessive_buffer_overrun_errors", 15, 15, Growth(0, is_full=True)),
    ],
)
def test_from_one_reading_to_the_next(name: str, before: int, after: int, expected: Growth) -> None:
    found = growth(name, before, after)
    assert found == expected
    assert found.is_certain == (not expected.was_reset and not expected.is_full)
