"""The data are exact in any order of reduction, and every kind of damage shows."""

from __future__ import annotations

import itertools

import pytest
import torch

from ncclcheck.bench import data
from ncclcheck.bench.collectives import COLLECTIVES, ELEMENT_BYTES

DTYPES = sorted(ELEMENT_BYTES)
COUNT = 5 * data.PERIOD + 1234


def filled(pattern: torch.Tensor, iteration: int = 3, count: int = COUNT) -> torch.Tensor:
    buffer = torch.zeros(count, dtype=pattern.dtype)
    data.fill(buffer, pattern, iteration)
    return buffer


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 300])
def test_the_sum_is_exact_in_every_order(dtype: str, world_size: int) -> None:
    summands = [filled(data.summand(rank, world_size, dtype), count=40_000) for rank in range(world_size)]
    orders = [
        range(world_size),
        reversed(range(world_size)),
        [*range(1, world_size, 2), *range(0, world_size, 2)],
    ]
    expected = data.total(0, world_size, dtype)
    for order in orders:
        result = torch.zeros(40_000, dtype=getattr(torch, dtype))
        for rank in order:
            result += summands[rank]
        assert data.difference(result, expected, 3) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_of_the_largest_world_is_exact(dtype: str) -> None:
    """Every partial sum is a whole number below the bound up to which the dtype holds all of them."""
    bits = {"float16": 11, "bfloat16": 8}.get(dtype, 24)
    total = torch.zeros(data.PERIOD, dtype=torch.int64)
    for rank in range(2048):
        total += data.summand.__wrapped__(rank, 2048, dtype)[: data.PERIOD].to(torch.int64)
    assert int(total.min()) >= 1
    assert int(total.max()) <= 1 << bits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bit", [0, 7, 15])
def test_one_flipped_bit_is_found_with_its_place(dtype: str, bit: int) -> None:
    pattern = data.total(0, 4, dtype)
    buffer = filled(pattern)
    good = float(buffer[50_000])
    half_words = buffer.view(torch.int16)
    half_words[50_000 * (buffer.element_size() // 2)] ^= -(1 << 15) if bit == 15 else 1 << bit
    found = data.difference(buffer, pattern, 3)
    assert found is not None
    assert (found.wrong, found.offset, found.expected) == (1, 50_000, good)
    assert found.got == float(buffer[50_000]) or found.got != found.got


@pytest.mark.parametrize("chunk", [4096, 16384, 32768])
def test_swapped_chunks_are_found(chunk: int) -> None:
    pattern = data.total(0, 4, "float32")
    buffer = filled(pattern)
    first, second = buffer[:chunk].clone(), buffer[chunk : 2 * chunk].clone()
    buffer[:chunk], buffer[chunk : 2 * chunk] = second, first
    found = data.difference(buffer, pattern, 3)
    assert found is not None
    assert found.offset < 8
    assert found.wrong > chunk


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("world_size", [2, 300])
def test_a_skipped_rank_is_found(dtype: str, world_size: int) -> None:
    pattern = data.total(0, world_size, dtype)
    buffer = filled(pattern) - filled(data.summand(1, world_size, dtype))
    found = data.difference(buffer, pattern, 3)
    assert found is not None
    assert found.wrong >= COUNT // world_size // 2


def test_a_rank_counted_twice_in_the_place_of_another_is_found() -> None:
    pattern = data.total(0, 4, "float32")
    buffer = filled(pattern) - filled(data.summand(1, 4, "float32")) + filled(data.summand(2, 4, "float32"))
    assert data.difference(buffer, pattern, 3) is not None


def test_parts_gathered_in_the_wrong_order_are_found() -> None:
    gather = COLLECTIVES["all_gather"]
    for one, other in itertools.combinations(range(4), 2):
        buffer = filled(gather.sent(one, 4, "bfloat16"), count=64)
        assert data.difference(buffer, gather.expected(one, 4, "bfloat16"), 3) is None
        assert data.difference(buffer, gather.expected(other, 4, "bfloat16"), 3) is not None


def test_the_result_of_another_iteration_is_a_wrong_one() -> None:
    pattern = data.moved(0, 2, "float32")
    buffer = filled(pattern, iteration=3, count=64)
    for iteration in range(-20, 40):
        assert (data.difference(buffer, pattern, iteration) is None) == (iteration == 3)


def test_every_wrong_element_is_counted_however_many_are_compared_at_once() -> None:
    pattern = data.total(0, 4, "float32")
    buffer = filled(pattern)
    buffer[[10, data.PERIOD + 10, COUNT - 1]] = 0.5
    for at_once in (1, 2, 1024):
        found = data.difference(buffer, pattern, 3, at_once)
        assert found is not None
        assert (found.wrong, found.offset, found.got) == (3, 10, 0.5)
