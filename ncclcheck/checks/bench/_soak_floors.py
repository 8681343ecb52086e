"""Floors of a soak: the median of each series, in bus bandwidth, as a benchmark of its length would have it."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.registry import Answer
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.bench_demands import Floor
from ncclcheck.model.benchmarks.soak import Soak, SoakSeries
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.units import format_number, format_size


def judge_soak_floor(bench: BenchResult, soak: Soak, floor: Floor) -> Iterator[Answer]:
    """Yield a finding for each series whose median is below the floor."""
    found = [
        series
        for series in soak.series
        if floor.op in (None, series.op)
        and floor.size_bytes in (None, series.size_bytes)
        and series.median_us > 0
    ]
    if not found:
        yield NotKnown(f"the floor {floor} matches nothing that this soak measured")
    for series in found:
        got_gb_s = _busbw_gb_s(series, bench.world_size)
        if got_gb_s >= floor.busbw_gb_s:
            continue
        what = f"{series.op} of {format_size(series.size_bytes)}"
        got = f"{format_number(got_gb_s)} GB/s"
        yield Finding(
            "error",
            f"below the floor {floor}: {what} {got} in the median of the soak",
            (),
            (
                Evidence(
                    (),
                    f"bus bandwidth of {what}",
                    got,
                    f"at least {format_number(floor.busbw_gb_s)} GB/s",
                    f"the median of {series.iterations} iterations of the soak",
                ),
            ),
            (Fix("see the findings about nodes and links, and measure who is slow", ("ncclcheck isolate",)),),
        )


def _busbw_gb_s(series: SoakSeries, ranks: int) -> float:
    factor = COLLECTIVES[series.op].bus_factor(ranks)
    return series.size_bytes / series.median_us / 1e3 * factor
