"""All figures of one finding are in one unit, with three digits and without exponents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.checks.rates import GBIT, MBIT, rate_unit


@pytest.mark.parametrize(
    ("gbit_s", "in_gbit", "in_mbit"),
    [
        (0.0123, "0.0123 Gbit/s", "12.3 Mbit/s"),
        (0.00001234, "0.0000123 Gbit/s", "0.0123 Mbit/s"),
        (0.956, "0.956 Gbit/s", "956 Mbit/s"),
        (94.04, "94 Gbit/s", "94040 Mbit/s"),
        (1234.5, "1234 Gbit/s", "1234500 Mbit/s"),
        (0.0, "0 Gbit/s", "0 Mbit/s"),
    ],
)
def test_a_value_is_written_in_the_unit_that_was_chosen(gbit_s: float, in_gbit: str, in_mbit: str) -> None:
    assert (GBIT(gbit_s), MBIT(gbit_s)) == (in_gbit, in_mbit)


def test_the_largest_value_chooses_the_unit() -> None:
    assert rate_unit((0.01, 9.4)) is GBIT
    assert rate_unit((0.01, 0.94)) is MBIT
    assert rate_unit(()) is MBIT


@given(st.floats(min_value=1e-6, max_value=1e5))
def test_what_is_written_is_the_value_and_no_exponent(gbit_s: float) -> None:
    for unit in (GBIT, MBIT):
        assert "e" not in unit.number(gbit_s)
        assert float(unit.number(gbit_s)) == pytest.approx(gbit_s * unit.in_a_gbit, rel=0.006)
