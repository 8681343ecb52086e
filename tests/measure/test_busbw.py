"""Sizes, counts and bus factors are those of nccl-tests."""

from __future__ import annotations

import pytest

from ncclcheck.measure.busbw import (
    algbw_gb_s,
    gathered_parts,
    received_from_others,
    reduced_and_spread,
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


@pytest.mark.parametrize("element_bytes", [2, 4, 8])
def test_too_small_a_size_is_raised_rather_than_measured_as_nothing(element_bytes: int) -> None:
    assert gathered_parts(8, element_bytes, 4).send_count * element_bytes == 16
    assert whole_buffer(1, element_bytes, 4).count == 1


def test_bus_bandwidth_of_a_gigabyte_per_second_by_hand() -> None:
    assert algbw_gb_s(1 << 30, 1_073_741.824) == pytest.approx(1.0)
    assert reduced_and_spread(8) == pytest.approx(1.75)
    assert received_from_others(8) == pytest.approx(0.875)
    assert reduced_and_spread(2) == pytest.approx(1.0)
    assert reduced_and_spread(1) == received_from_others(1) == 0.0
