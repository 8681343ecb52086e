"""Values of which neighbours are alike."""

from __future__ import annotations

from random import Random


def wandering(count: int, correlation: float, seed: int = 1) -> list[float]:
    """An AR(1) process around 0 with a deviation of 1."""
    random, series = Random(seed), []  # noqa: S311 (a sample, no secret)
    state = random.gauss(0, 1)
    for _ in range(count):
        state = correlation * state + random.gauss(0, (1 - correlation**2) ** 0.5)
        series.append(state)
    return series
