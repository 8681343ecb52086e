"""The data that collectives carry, and the comparison that finds the first wrong element of a result.

Every buffer holds one table of numbers, which repeats with a prime period, from a place that depends on the rank, the
part of the buffer and the iteration. So no element fits another rank, another chunk or another iteration, and a
table fits the cache: filling and comparing cost one pass over the buffer. Sums are exact in any order of
reduction, for every dtype and up to 16,384 ranks: all values are whole numbers, no partial sum exceeds what the dtype
holds exactly, and where the sum of all ranks would, only some ranks contribute at each position.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from ncclcheck.measure.content import Content, Kind

if TYPE_CHECKING:
    from torch import Tensor

PERIOD = 16411  # the first prime above 2**14: every rank of 16,384 starts elsewhere
LARGEST_WORLD = 1 << 14
_SHIFTS = 1021
_SHIFT_ELEMENTS = 16
# The largest whole number up to which all are exact: 2**(bits of the significand), or an integer's own range.
_LARGEST_EXACT = {
    "float64": 1 << 24,
    "float32": 1 << 24,
    "int32": 1 << 24,
    "float16": 1 << 11,
    "bfloat16": 1 << 8,
    "int8": 127,
    "uint8": 255,
    "float8_e4m3fn": 1 << 4,
    "float8_e5m2": 1 << 3,
}
_MOVED_VALUES = 1 << 16
_FINITE_PATTERNS = 0x77  # bytes 0x01 to 0x77 are finite in both 8-bit formats (OCP 8-bit floating point, 2.1)
_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


class Tables(Struct, frozen=True):
    """What the tables of one benchmark depend on, besides the kind."""

    world_size: int
    dtype: str


class Difference(Struct, frozen=True):
    """How a buffer differs from what was expected: how many elements, and the first of them."""

    wrong: int
    offset: int
    got: float
    expected: float


def noise() -> Tensor:
    """Return one period of 32-bit whole numbers (two rounds of a multiply-xorshift hash of the position)."""
    import torch

    mask = 0xFFFFFFFF
    mixed = (torch.arange(PERIOD, dtype=torch.int64) * 0x9E3779B1 + 0x85EBCA77) & mask
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & mask
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & mask
    return mixed ^ (mixed >> 15)


def summands(world_size: int, dtype: str) -> Tensor:
    """Return one period of what ranks add up; rank r begins at position r. No sum exceeds what the dtype holds.

    At most `contributors` of the ranks add something at a position, each at most a `contributors`-th of the largest
    exact number. Where that is not all of them, every position that is no multiple of `every` is 0: so many ranks one
    after the other hold at most one multiple more than their part, and one more where the period ends among them.
    """
    import torch

    largest = _LARGEST_EXACT[dtype]
    contributors = 1 << largest.bit_length() // 2
    values = noise() % (largest // contributors) + 1
    if world_size <= contributors:
        return values
    every = -(-world_size // (contributors - 1))
    return values * (torch.arange(PERIOD) % every == 0)


def totals(world_size: int, dtype: str) -> Tensor:
    """Return one period of the sum over all ranks of what each adds: sums of `world_size` neighbours."""
    import torch

    period = summands(world_size, dtype)
    around = period.repeat(-(-world_size // PERIOD) + 1)
    running = torch.cat((torch.zeros(1, dtype=torch.int64), around.cumsum(0)))
    return running[world_size : world_size + PERIOD] - running[:PERIOD]


def moved(dtype: str) -> Tensor:
    """Return one period of what is passed on unchanged; never the bits of 0."""
    import torch

    if dtype.startswith("float8"):
        return (noise() % _FINITE_PATTERNS + 1).to(torch.uint8).view(getattr(torch, dtype))
    return (noise() % min(_LARGEST_EXACT[dtype], _MOVED_VALUES) + 1).to(getattr(torch, dtype))


@lru_cache(maxsize=32)
def _table(kind: Kind, tables: Tables, periods: int, device: str) -> Tensor:
    """Return the bits of so many periods of the table."""
    import torch

    if kind == "moved":
        values = moved(tables.dtype)
    else:
        whole = summands if kind == "summand" else totals
        values = whole(tables.world_size, tables.dtype).to(getattr(torch, tables.dtype))
    return _bits(values).repeat(periods).to(device)


def shift_of(iteration: int) -> int:
    """Return where in the period the data of an iteration start: the result of another iteration is wrong."""
    return iteration * 37 % _SHIFTS * _SHIFT_ELEMENTS


def fill(buffer: Tensor, content: Content, tables: Tables, iteration: int) -> None:
    """Fill `buffer` (one dimension) with the content of `iteration`."""
    for _, target, expected in _blocks(buffer, content, tables, iteration, buffer.numel()):
        target.copy_(expected)


def difference(
    buffer: Tensor, content: Content, tables: Tables, iteration: int, elements_at_once: int = PERIOD
) -> Difference | None:
    """Return how `buffer` differs from the content of `iteration`, bit for bit; None: nowhere.

    About `elements_at_once` are compared in one operation: a period stays in a CPU's cache, many spare a GPU the
    launches.
    """
    wrong = 0
    first: tuple[int, Tensor, Tensor] | None = None
    for offset_of, got, expected in _blocks(buffer, content, tables, iteration, elements_at_once):
        if _is_same(got, expected):
            continue
        places = (got != expected).nonzero()
        wrong += len(places)
        at = tuple(int(place) for place in places[0])
        offset = sum(index * stride for index, stride in zip(at, got.stride(), strict=True)) + offset_of
        if first is None or offset < first[0]:
            first = (offset, got[at], expected[at])
    if first is None:
        return None
    offset, got_bits, expected_bits = first
    return Difference(wrong, offset, _value(got_bits, tables.dtype), _value(expected_bits, tables.dtype))


def _value(bits: Tensor, dtype: str) -> float:
    import torch

    return float(bits.reshape(1).view(getattr(torch, dtype)))


def _blocks(
    buffer: Tensor, content: Content, tables: Tables, iteration: int, elements_at_once: int
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield the bits of the buffer in blocks: where a block starts, the block, and what is expected there.

    A block is several parts x several periods x one period; then what is left of a period at the end of each part.
    """
    bits = _bits(buffer)
    origin, part = bits.storage_offset(), bits.numel() // content.parts
    begin = (content.start + shift_of(iteration)) % PERIOD
    reach = begin + (content.parts - 1) * content.step + PERIOD
    table = _table(content.kind, tables, -(-reach // PERIOD), str(buffer.device))
    whole, rest = divmod(part, PERIOD)
    together = max(1, min(content.parts, elements_at_once // max(1, part)))
    periods = max(1, min(whole, elements_at_once // PERIOD // together))
    for first in range(0, content.parts, together):
        parts = min(together, content.parts - first)
        start = begin + first * content.step
        for row in range(0, whole, periods):
            rows = min(periods, whole - row)
            offset = first * part + row * PERIOD
            got = bits.as_strided((parts, rows, PERIOD), (part, PERIOD, 1), origin + offset)
            yield offset, got, table.as_strided((parts, rows, PERIOD), (content.step, 0, 1), start)
        if rest:
            offset = first * part + whole * PERIOD
            got = bits.as_strided((parts, 1, rest), (part, rest, 1), origin + offset)
            yield offset, got, table.as_strided((parts, 1, rest), (content.step, 0, 1), start)


def _bits(values: Tensor) -> Tensor:
    """Return the same memory as whole numbers: 0.0 and -0.0 differ, and a NaN equals itself."""
    import torch

    return values.view(getattr(torch, _BITS[values.element_size()]))


def _is_same(got: Tensor, expected: Tensor) -> bool:
    """Return whether both hold the same bits. In CPU memory memcmp compares, four times as fast as torch."""
    import torch

    if got.shape[:2] == (1, 1) and got.device.type == "cpu":
        return bool(_memcmp(got.data_ptr(), expected.data_ptr(), got.numel() * got.element_size()) == 0)
    return bool(torch.equal(got, expected))


_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_memcmp.restype = ctypes.c_int
