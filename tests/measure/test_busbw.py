"""Sizes, counts and bus factors are those of nccl-tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ncclcheck.measure.busbw import (
    Sizing,
    algbw_gb_s,
    all_but_own_part,
    exchanged_parts,
    gathered_parts,
    once,
    reduced_and_spread,
    spread_parts,
    whole_buffer,
)


def test_all_reduce_counts_the_whole_buffer_on_every_rank() -> None:
    sizing = whole_buffer(64 << 20, 4, 8)
    assert (sizing.send_count, sizing.recv_count, sizing.count) == (1 << 24, 1 << 24, 1 << 24)
    assert sizing.size_bytes == 64 << 20


def test_all_gather_size_is_the_total_and_its_count_one_ranks_part() -> None:
    sizing = gathered_parts(64 << 20, 4, 8)
    assert (sizing.send_count, sizing.recv_count, sizing.count) == (1 << 21, 1 << 24, 1 << 21)
    assert sizing.size_bytes == 64 << 20


def test_all_gather_parts_are_cut_down_to_sixteen_bytes() -> None:
    sizing = gathered_parts(1000, 4, 3)  # 250 elements, 83 each, 80 of them a multiple of 16 bytes
    assert (sizing.count, sizing.size_bytes) == (80, 960)


def test_what_is_spread_or_exchanged_has_the_total_as_its_size_and_one_part_as_its_count() -> None:
    spread = spread_parts(64 << 20, 2, 8)
    assert (spread.send_count, spread.recv_count, spread.count) == (1 << 25, 1 << 22, 1 << 22)
    exchanged = exchanged_parts(64 << 20, 1, 8)
    assert (exchanged.send_count, exchanged.recv_count, exchanged.count) == (1 << 26, 1 << 26, 1 << 23)
    assert spread.size_bytes == exchanged.size_bytes == 64 << 20


@pytest.mark.parametrize("sizing", [gathered_parts, spread_parts, exchanged_parts])
@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_every_part_is_a_multiple_of_sixteen_bytes_and_none_is_lost(
    sizing: Callable[[int, int, int], Sizing], element_bytes: int
) -> None:
    for size_bytes in (8, 1000, 4097, 1 << 20):
        for world_size in (1, 2, 3, 7, 1000):
            one = sizing(size_bytes, element_bytes, world_size)
            assert one.count * element_bytes % 16 == 0
            assert one.size_bytes == one.count * element_bytes * world_size
            assert one.size_bytes <= max(size_bytes, 16 * world_size)
            assert one.size_bytes > size_bytes - 16 * world_size


@pytest.mark.parametrize("element_bytes", [2, 4, 8])
def test_too_small_a_size_is_raised_rather_than_measured_as_nothing(element_bytes: int) -> None:
    assert gathered_parts(8, element_bytes, 4).send_count * element_bytes == 16
    assert whole_buffer(1, element_bytes, 4).count == 1


def test_bus_bandwidth_of_a_gigabyte_per_second_by_hand() -> None:
    assert algbw_gb_s(1 << 30, 1_073_741.824) == pytest.approx(1.0)
    assert reduced_and_spread(8) == pytest.approx(1.75)
    assert all_but_own_part(8) == pytest.approx(0.875)
    assert reduced_and_spread(2) == pytest.approx(1.0)
    assert reduced_and_spread(1) == all_but_own_part(1) == 0.0
    assert once(1) == once(8) == 1.0
