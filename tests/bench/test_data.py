"""The data are exact in any order of reduction, and every kind of damage shows."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ncclcheck.bench import data
from ncclcheck.bench.data import Tables
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.measure.content import PART_STEP, SOURCE_STEP, Content

pytestmark = pytest.mark.slow  # imports torch
DTYPES = sorted(ELEMENT_BYTES)
COUNT = 5 * data.PERIOD + 1234
# Up to which whole number each type holds all of them: IEEE 754 and bfloat16 by the bits of the significand, OCP 8-bit
# floating point by those of E4M3 and E5M2, whole numbers by their range.
HOLDS = {
    "float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8, "float8_e4m3fn": 2**4, "float8_e5m2": 2**3,
    "int32": 2**31 - 1, "int8": 127, "uint8": 255,
}  # fmt: skip
OWN, TOTAL = Content("moved"), Content("total")
worlds = st.integers(1, data.LARGEST_WORLD)
FOUR = Tables(4, "float32")


def filled(content: Content, tables: Tables = FOUR, iteration: int = 3, count: int = COUNT) -> torch.Tensor:
    buffer = torch.zeros(count, dtype=getattr(torch, tables.dtype))
    data.fill(buffer, content, tables, iteration)
    return buffer


def test_every_type_of_the_benchmark_is_among_those_whose_range_is_known() -> None:
    assert set(HOLDS) == set(DTYPES)


@pytest.mark.parametrize("dtype", [one for one in DTYPES if HOLDS[one] <= 2**11])
def test_each_small_type_holds_all_whole_numbers_of_its_range(dtype: str) -> None:
    numbers = torch.arange(HOLDS[dtype] + 1, dtype=torch.float32)
    assert torch.equal(numbers.to(getattr(torch, dtype)).to(torch.float32), numbers)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25, deadline=None)
@given(worlds)
@example(1)
@example(data.LARGEST_WORLD)
def test_no_order_of_reduction_leaves_the_exact_range(dtype: str, world_size: int) -> None:
    """What is added is never negative, so every partial sum, of whichever ranks, is at most the sum of all."""
    summands, totals = data.summands(world_size, dtype), data.totals(world_size, dtype)
    assert int(summands.min()) >= 0
    assert int(totals.min()) >= 1
    assert int(totals.max()) <= HOLDS[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=15, deadline=None)
@given(world_size=st.integers(1, 200), seed=st.integers(0, 99))
def test_the_type_itself_gets_the_expected_sum_in_any_order(dtype: str, world_size: int, seed: int) -> None:
    tables, order = Tables(world_size, dtype), list(range(world_size))
    random.Random(seed).shuffle(order)  # noqa: S311 (an order, no secret)
    own_type = getattr(torch, dtype)
    result = torch.zeros(500, dtype=own_type)
    for rank in order:
        one = filled(Content("summand", rank), tables, count=500)
        result = (result.to(torch.float64) + one.to(torch.float64)).to(own_type)  # rounded after each sum
    assert data.difference(result, TOTAL, tables, 3) is None


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25, deadline=None)
@given(world_size=worlds, rank=worlds)
@example(data.LARGEST_WORLD, data.LARGEST_WORLD)
def test_no_rank_can_be_left_out_of_a_sum_unseen(dtype: str, world_size: int, rank: int) -> None:
    """Where the type holds few numbers, a rank adds something only now and then, but regularly."""
    tables = Tables(world_size, dtype)
    summand = filled(Content("summand", rank % world_size), tables, count=data.PERIOD).to(torch.float32)
    gaps = torch.diff(summand.nonzero().flatten(), prepend=torch.tensor([-1]))
    assert 0 < int(gaps.max()) <= 2 * (world_size // 3 + 1)


@pytest.mark.parametrize("world_size", [2, 3, 300, data.LARGEST_WORLD])
def test_the_sum_is_that_of_all_ranks(world_size: int) -> None:
    for dtype in ("float32", "bfloat16"):
        one = data.summands(world_size, dtype)
        added = torch.zeros_like(one)
        for rank in range(world_size):
            added += one.roll(-rank)
        assert torch.equal(added, data.totals(world_size, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_handed_on_is_a_number_and_never_what_an_empty_buffer_holds(dtype: str) -> None:
    values = filled(OWN, Tables(4, dtype), count=data.PERIOD)
    assert bool(torch.isfinite(values.to(torch.float64)).all())
    assert bool((values.to(torch.float64) != 0).all())
    assert len(values.to(torch.float64).unique()) > 100


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bit", [0, 3, 7])
def test_one_flipped_bit_is_found_with_its_place(dtype: str, bit: int) -> None:
    tables = Tables(4, dtype)
    buffer = filled(TOTAL, tables)
    good = float(buffer[50_000])
    data_bytes = buffer.view(torch.uint8)
    data_bytes[50_000 * buffer.element_size()] ^= 1 << bit
    found = data.difference(buffer, TOTAL, tables, 3)
    assert found is not None
    assert (found.wrong, found.offset, found.expected) == (1, 50_000, good)
    assert found.got == float(buffer[50_000]) or found.got != found.got


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunk", [4096, 16384, data.PERIOD, 2 * data.PERIOD])
def test_swapped_chunks_are_found(dtype: str, chunk: int) -> None:
    """Also chunks of a whole period: the parts of a buffer do not start at the same place of the table."""
    tables, content = Tables(4, dtype), Content("total", 0, 4, PART_STEP)
    buffer = filled(content, tables, count=4 * chunk)
    first, second = buffer[:chunk].clone(), buffer[chunk : 2 * chunk].clone()
    buffer[:chunk], buffer[chunk : 2 * chunk] = second, first
    found = data.difference(buffer, content, tables, 3)
    assert found is not None
    assert found.offset < 64
    assert found.wrong > chunk / 2


def test_chunks_swapped_within_a_part_are_found() -> None:
    buffer = filled(TOTAL)
    first, second = buffer[:4096].clone(), buffer[4096:8192].clone()
    buffer[:4096], buffer[4096:8192] = second, first
    found = data.difference(buffer, TOTAL, FOUR, 3)
    assert found is not None
    assert found.wrong > 8000


def test_a_rank_counted_twice_in_the_place_of_another_is_found() -> None:
    one, other = filled(Content("summand", 1)), filled(Content("summand", 2))
    assert data.difference(filled(TOTAL) - one + other, TOTAL, FOUR, 3) is not None


def test_no_two_ranks_of_the_largest_world_hold_the_same() -> None:
    steps = {rank * SOURCE_STEP % data.PERIOD for rank in range(data.LARGEST_WORLD)}
    parts = {rank * PART_STEP % data.PERIOD for rank in range(data.LARGEST_WORLD)}
    assert len(steps) == len(parts) == data.LARGEST_WORLD


def test_the_data_of_one_rank_for_another_fit_no_third() -> None:
    tables = Tables(8, "bfloat16")
    for one, other in itertools.permutations(range(8), 2):
        sent = Content("moved", one * SOURCE_STEP + other * PART_STEP)
        buffer = filled(sent, tables, count=64)
        for source, part in itertools.product(range(8), repeat=2):
            content = Content("moved", source * SOURCE_STEP + part * PART_STEP)
            same = data.difference(buffer, content, tables, 3) is None
            assert same == ((source, part) == (one, other))


def test_the_result_of_another_iteration_is_a_wrong_one() -> None:
    buffer = filled(OWN, count=64)
    for iteration in range(-20, 40):
        found = data.difference(buffer, OWN, FOUR, iteration)
        assert (found is None) == (iteration == 3)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("count", [12, 3000, 3 * data.PERIOD, 9 * data.PERIOD + 30])
def test_every_wrong_element_is_counted_however_many_are_compared_at_once(count: int, parts: int) -> None:
    content, tables = Content("total", 5, parts, PART_STEP), FOUR
    buffer = filled(content, tables, count=count)
    assert {data.difference(buffer, content, tables, 3, many) for many in (1, data.PERIOD, 10**4, 10**9)} == {
        None
    }
    buffer[[7, count - 1]] = 0.5
    for at_once in (1, data.PERIOD, 2 * data.PERIOD, 10**4, 10**9):
        found = data.difference(buffer, content, tables, 3, at_once)
        assert found is not None
        assert (found.wrong, found.offset, found.got) == (2, 7, 0.5)
