"""Slow GPUs among others, by what all of them did at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.blame_gpus import slow_gpus
from ncclcheck.model.bench import GpuSpeed
from tests.bench_builders import bench_point


def gpus(clocks: Sequence[float], model: str = "H100") -> list[GpuSpeed]:
    return [
        GpuSpeed(rank, "node01", model, clock, 700.0 * clock / 1980, 2500.0, 55.0)
        for rank, clock in enumerate(clocks)
    ]


def test_a_low_clock_that_slows_nothing_was_a_disturbed_measurement() -> None:
    found = gpus([1980, 1965, 1755, 1950])
    assert slow_gpus([*found[:2], replace(found[2], compute_tflop_s=690.0), found[3]]) == ()
    assert len(slow_gpus([*found[:2], replace(found[2], compute_tflop_s=0.0), found[3]])) == 1


def test_a_low_clock_is_throttled_and_healthy_scatter_is_not() -> None:
    assert slow_gpus(gpus([1980, 1965, 1950, 1935, 1980, 1965, 1950, 1920])) == ()
    (slow,) = slow_gpus(gpus([1980, 1965, 1755, 1950]))
    assert (slow.rank, slow.part, slow.value, slow.usual) == (2, "throttled", 1755, 1965)


def test_of_two_gpus_more_is_asked() -> None:
    assert slow_gpus(gpus([1980, 1800])) == ()
    assert [slow.rank for slow in slow_gpus(gpus([1980, 1755]))] == [1]
    assert slow_gpus(gpus([1200])) == slow_gpus([]) == ()


def test_only_gpus_of_one_model_are_compared() -> None:
    mixed = [
        *gpus([1980, 1980, 1965]),
        *(replace(gpu, rank=3 + gpu.rank) for gpu in gpus([1410, 1410], "A100")),
    ]
    assert slow_gpus(mixed) == ()


def test_what_was_not_measured_is_not_slow() -> None:
    found = gpus([1980, 1965, 1950, 1980])
    found[1] = replace(found[1], clock_mhz=0.0, host_gb_s=0.0)
    assert slow_gpus(found) == ()


def test_a_low_clock_explains_a_slow_memory_and_not_a_slow_link() -> None:
    found = gpus([1980, 1965, 1950, 345])
    found[3] = replace(found[3], compute_tflop_s=100.0, device_gb_s=800.0, host_gb_s=20.0)
    assert [(slow.rank, slow.part) for slow in slow_gpus(found)] == [(3, "throttled"), (3, "slow PCIe")]


def test_two_throttled_gpus_do_not_hide_each_other() -> None:
    assert [slow.rank for slow in slow_gpus(gpus([1980, 1965, 1755, 1740, 1980, 1950]))] == [2, 3]


def test_the_clocks_of_the_points_tell_it_where_nothing_else_does() -> None:
    point = bench_point(1 << 20, (0.0, 900.0, 0.0, 0.0))
    ranks = zip(point.ranks, (1980.0, 1965.0, 1950.0, 1755.0), strict=True)
    point = replace(point, ranks=tuple(replace(rank, clock_mhz=clock) for rank, clock in ranks))
    assert [(slow.rank, slow.part) for slow in slow_gpus((), [point, point])] == [(3, "throttled")]
    assert slow_ranks([point, point]) == ()  # enqueued calls cannot be late
