"""The data that collectives carry, and the comparison that finds the first wrong element of a result.

The element at a position depends on rank, position and iteration. It repeats with a prime period, so no chunk of a
power of two can be mistaken for another one, and a period fits the cache: filling and comparing cost one pass over
the buffer. Sums are exact in any order of reduction, for every dtype and world size: all values are whole numbers,
and where a dtype could not hold the sum of all ranks, only some ranks contribute at each position.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from torch import Tensor

PERIOD = 16381  # the largest prime below 2**14
_SHIFTS = 1021
_SHIFT_ELEMENTS = 16
# The largest whole number up to which all are exact: 2**(bits of the significand), or the integer's own range.
_EXACT_BITS = {"float64": 24, "float32": 24, "int32": 24, "float16": 11, "bfloat16": 8}


class Difference(Struct, frozen=True):
    """How a buffer differs from what was expected: how many elements, and the first of them."""

    wrong: int
    offset: int
    got: float
    expected: float


def _noise(rank: int) -> Tensor:
    """Whole numbers of 32 bits that depend on rank and position (two rounds of a multiply-xorshift hash)."""
    import torch

    mask = 0xFFFFFFFF
    mixed = (torch.arange(PERIOD, dtype=torch.int64) * 0x9E3779B1 + (rank + 1) * 0x85EBCA77) & mask
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & mask
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & mask
    return mixed ^ (mixed >> 15)


def _twice(period: Tensor, dtype: str) -> Tensor:
    import torch

    return period.to(getattr(torch, dtype)).repeat(2)


def _summand(rank: int, world_size: int, dtype: str) -> Tensor:
    import torch

    bits = _EXACT_BITS[dtype]
    contributors = 1 << bits // 2
    values = _noise(rank) % ((1 << bits) // contributors) + 1
    every = -(-world_size // contributors)
    return values * ((torch.arange(PERIOD) + rank) % every == 0)


@lru_cache(maxsize=8)
def summand(rank: int, world_size: int, dtype: str) -> Tensor:
    """What `rank` contributes to a sum: two periods, so that any shift below one period is a slice."""
    return _twice(_summand(rank, world_size, dtype), dtype)


@lru_cache(maxsize=8)
def total(_chunk: int, world_size: int, dtype: str) -> Tensor:
    """The sum of all ranks' summands: two periods."""
    result = _summand(0, world_size, dtype)
    for rank in range(1, world_size):
        result += _summand(rank, world_size, dtype)
    return _twice(result, dtype)


@lru_cache(maxsize=256)
def moved(rank: int, _world_size: int, dtype: str) -> Tensor:
    """What `rank` hands to others unchanged: two periods."""
    return _twice(_noise(rank) % (1 << min(16, _EXACT_BITS[dtype])) + 1, dtype)


def shift_of(iteration: int) -> int:
    """Where in the period the data of an iteration start: the result of another iteration is a wrong one."""
    return iteration * 37 % _SHIFTS * _SHIFT_ELEMENTS


def fill(buffer: Tensor, pattern: Tensor, iteration: int) -> None:
    """`buffer` (one dimension) then holds the pattern as it is at `iteration`."""
    everything = max(1, buffer.numel() // PERIOD)
    for _, rows, wanted in _pieces(buffer, _period(buffer, pattern, iteration), everything):
        rows.copy_(wanted)


def difference(
    buffer: Tensor, pattern: Tensor, iteration: int, periods_at_once: int = 1
) -> Difference | None:
    """How `buffer` differs from the pattern at `iteration`, bit for bit; None: nowhere.

    `periods_at_once` are compared in one operation: one stays in a CPU's cache, many spare a GPU the launches.
    """
    import torch

    wrong, first = 0, None
    for start, got, expected in _pieces(buffer, _period(buffer, pattern, iteration), periods_at_once):
        got_bits, expected_bits = _bits(got), _bits(expected)
        if torch.equal(got_bits, expected_bits):
            continue
        differs = (got_bits != expected_bits).flatten()
        wrong += int(differs.sum())
        if first is None:
            at = int(differs.nonzero()[0])
            first = (start + at, float(got.flatten()[at]), float(expected[0, at % PERIOD]))
    return None if first is None else Difference(wrong, *first)


def _period(buffer: Tensor, pattern: Tensor, iteration: int) -> Tensor:
    shift = shift_of(iteration)
    return pattern[shift : shift + PERIOD].to(buffer.device)


def _pieces(buffer: Tensor, period: Tensor, periods_at_once: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Start, rows of the buffer, and the rows expected there: whole periods first, then what is left of one."""
    whole = buffer.numel() // PERIOD
    rows = buffer[: whole * PERIOD].view(whole, PERIOD)
    for first in range(0, whole, periods_at_once):
        block = rows[first : first + periods_at_once]
        yield first * PERIOD, block, period.expand_as(block)
    rest = buffer[whole * PERIOD :].view(1, -1)
    yield whole * PERIOD, rest, period[: rest.numel()].view(1, -1)


def _bits(values: Tensor) -> Tensor:
    """The same memory as whole numbers: 0.0 and -0.0 differ, and a NaN equals itself."""
    import torch

    return values.view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
    )
