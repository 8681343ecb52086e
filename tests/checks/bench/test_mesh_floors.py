"""Floors of single dimensions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.bench_demands import BenchDemands, parse_floor
from ncclcheck.model.errors import UsageError
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster
from tests.checks.running import finding, is_silent, run
from tests.mesh_builders import mesh_point, mesh_result


def seen(*rules: str) -> Snapshot:
    """The slowest group of dp has 0.524 GB/s, the other 1.049."""
    demands = BenchDemands(tuple(parse_floor(rule) for rule in rules))
    return replace(cluster(4), bench=mesh_result(mesh_point(1000, 2000)), bench_demands=demands)


def test_a_floor_that_the_slowest_group_reaches_is_silent() -> None:
    assert is_silent("bench-below-floor", seen("dp:=0.5"))
    assert is_silent("bench-below-floor", seen("dp:all_reduce@1M=0.5"))


def test_the_slowest_group_is_named() -> None:
    found = finding("bench-below-floor", seen("dp:all_reduce@1M=0.6"))
    assert (
        "below the floor dp:all_reduce@1M=0.600: all_reduce of 1M in dp: group 1 has 0.524 GB/s"
        in found.summary
    )
    assert found.hosts == ("node03", "node04")


@pytest.mark.parametrize("rule", ["tp:=1", "dp:all_gather=1", "dp:@2M=1"])
def test_a_floor_of_what_was_not_measured_is_not_known(rule: str) -> None:
    assert run("bench-below-floor", seen(rule)).outcome == "unknown"


def test_a_floor_reads_back_as_it_was_written() -> None:
    for text in ("dp:all_reduce@64M=20.00", "dp:@1G=3.00", "all_reduce@1G=300.0", "300.0"):
        assert str(parse_floor(text)) == text
    for text in ("d p:all_reduce=3", ":all_reduce=3", "dp:all_reduce@1G"):
        with pytest.raises(UsageError, match="--min-busbw"):
            parse_floor(text)
