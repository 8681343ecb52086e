"""Bandwidths for people: all figures of one finding in one unit, so that they can be compared at a glance."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct


class RateUnit(Struct, frozen=True):
    """A unit, and how many of it a Gbit/s is."""

    name: str
    in_a_gbit: float

    def __call__(self, gbit_s: float) -> str:
        """Return the value with this unit."""
        return f"{self.number(gbit_s)} {self.name}"

    def number(self, gbit_s: float) -> str:
        """Return the value without the unit: three significant digits, no exponent."""
        value = gbit_s * self.in_a_gbit
        return f"{value:.0f}" if value >= 100 else f"{Decimal(f'{value:.3g}'):f}"  # noqa: PLR2004 (three digits)


GBIT, MBIT = RateUnit("Gbit/s", 1.0), RateUnit("Mbit/s", 1000.0)


def rate_unit(gbit_s: Iterable[float]) -> RateUnit:
    """Return the unit for values that are compared with each other: that of the largest."""
    return GBIT if max(gbit_s, default=0.0) >= 1 else MBIT
