"""Raw samples are kept in bounds."""

from __future__ import annotations

from ncclcheck.measure.samples import MOST_SAMPLES, kept_samples


def test_few_are_all_kept_in_their_order() -> None:
    assert kept_samples([3.14159, 12.3456, 1000.04]) == (3.142, 12.3, 1000.0)


def test_of_many_evenly_spread_ones_are_kept() -> None:
    kept = kept_samples([float(number) for number in range(10_000)])
    assert len(kept) == MOST_SAMPLES
    assert kept[:3] == (0.0, 10.0, 20.0)
    assert kept[-1] == 9990.0
