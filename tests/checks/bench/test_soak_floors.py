"""Floors of a soak."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.bench_demands import BenchDemands, parse_floor
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.soak_builders import healthy_lines, with_soak

SLUG = "bench-below-floor"
# 64 MiB in 1.002 ms between four ranks: 67 GB/s, and as bus bandwidth 2 * 3/4 of that.
BUSBW_GB_S = 100.5


def demanding(rule: str, blocks: int = 40) -> Snapshot:
    soaked = with_soak(cluster(4), healthy_lines(blocks))
    return replace(soaked, bench_demands=BenchDemands((parse_floor(rule),)))


@pytest.mark.parametrize("rule", ["110", "all_reduce=110", "all_reduce@64M=110", "@64M=110"])
def test_the_median_of_the_series_is_below_the_floor(rule: str) -> None:
    found = finding(SLUG, demanding(rule))
    assert "all_reduce of 64M" in found.summary
    got = float(found.evidence[0].observed.split()[0])
    assert got == pytest.approx(BUSBW_GB_S, rel=0.03)  # a percentile is known to 2 %


def test_one_that_reaches_it_passes_and_what_was_not_measured_is_unknown() -> None:
    assert is_silent(SLUG, demanding("90"))
    assert run(SLUG, demanding("all_gather=90")).outcome == "unknown"
    assert run(SLUG, demanding("@1M=90")).outcome == "unknown"
    assert run(SLUG, demanding("90", blocks=5)).outcome == "unknown"
