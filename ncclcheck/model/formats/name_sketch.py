"""A small table of many names, from two of which the few names that are in one only can be read.

It is an invertible Bloom lookup table (Goodrich, Mitzenmacher 2011) with sums: every name is added as a number to two
cells; the cells of two tables are subtracted, so that what both have vanishes, and a cell in which one name is left
tells it. Its size does not depend on how many names there are; dozens of different names can be recovered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

_ROW = 128
_NAME_BYTES = 240  # of a longer name the end
_SPREAD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: spreads neighbouring keys over the cells
_MASK = (1 << 64) - 1
# A name as a number: one in the lowest bits, which counts names in a sum; its key with room for a carry; its bytes.
_COUNT_BITS, _KEY_BITS = 32, 64
_COUNT_MASK = (1 << _COUNT_BITS) - 1
_MOST_DIGITS = 1024
_MOST_STEPS = 8 * _ROW


class NameSketch:
    """The table while it is filled; state by design, since millions of names pass through it."""

    def __init__(self) -> None:
        self._cells = [0] * (2 * _ROW)

    def add(self, name: bytes, key: int) -> None:
        """Add a name; `key` is the same number for it on every node, of 32 bits."""
        mixed = key * _SPREAD & _MASK
        number = (int.from_bytes(name[-_NAME_BYTES:], "little") << 64 | key) << 32 | 1
        self._cells[mixed >> 57] += number
        self._cells[_ROW + (mixed >> 50 & 127)] += number

    def cells(self) -> tuple[str, ...]:
        """Return the table as it is now: its sums in hexadecimal."""
        return tuple(f"{cell:x}" for cell in self._cells)


def difference(first: Sequence[str], second: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the names only in the first table, those only in the second, and whether these are all.

    Tables of another size, or empty ones, tell nothing.
    """
    left = _subtracted(first, second)
    only: tuple[set[str], set[str]] = set(), set()
    for _ in range(_MOST_STEPS if left else 0):
        number = next(_single(left), None)
        if number is None:
            break
        only[number < 0].add(_text(abs(number)))
        for cell in _cells_of(_key(abs(number))):
            left[cell] -= number
    return tuple(sorted(only[0])), tuple(sorted(only[1])), bool(left) and not any(left)


def _subtracted(first: Sequence[str], second: Sequence[str]) -> list[int]:
    if not len(first) == len(second) == 2 * _ROW or any(
        len(cell) > _MOST_DIGITS for cell in (*first, *second)
    ):
        return []
    try:
        return [int(cell, 16) - int(their_cell, 16) for cell, their_cell in zip(first, second, strict=True)]
    except ValueError:  # facts of another node can hold anything
        return []


def _single(left: list[int]) -> Iterator[int]:
    """Return the names that are alone in a cell, as numbers: negative where the second table has it.

    Two names less one of the other table count as one as well, but their sum is hardly ever valid UTF-8.
    """
    for place, cell in enumerate(left):
        number = abs(cell)
        if (
            number & _COUNT_MASK == 1
            and _key(number) <= _COUNT_MASK
            and place in _cells_of(_key(number))
            and _is_text(_bytes_of(number))
        ):
            yield cell


def _key(number: int) -> int:
    return number >> _COUNT_BITS & _MASK


def _cells_of(key: int) -> tuple[int, int]:
    mixed = key * _SPREAD & _MASK
    return mixed >> 57, _ROW + (mixed >> 50 & 127)


def _bytes_of(number: int) -> bytes:
    name = number >> _COUNT_BITS + _KEY_BITS
    return name.to_bytes((name.bit_length() + 7) // 8, "little")


def _is_text(data: bytes) -> bool:
    """Return whether it is UTF-8; of a name that was cut, the beginning may lack up to three bytes of a letter."""
    cut = 4 if len(data) == _NAME_BYTES else 1
    for start in range(cut):
        with suppress(UnicodeDecodeError):
            data[start:].decode("utf-8")
            return len(data) <= _NAME_BYTES
    return False


def _text(number: int) -> str:
    return _bytes_of(number)[-_NAME_BYTES:].decode("utf-8", "replace")
