"""Sizes and rates as people write and read them: binary sizes (1M = 1048576 B), decimal rates (1 GB/s = 1e9 B/s)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from ncclcheck.model.errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGT]?)(I?B)?", re.ASCII | re.IGNORECASE)
_FACTOR = re.compile(r"(\d{1,9})X", re.ASCII | re.IGNORECASE)
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 24 * 3600.0}
_TIME = re.compile(r"(\d{1,7}(?:\.\d{0,3})?) ?(s|m|h|d|)", re.ASCII)
MOST_SIZES = 256
LARGEST_BYTES = 1 << 44
_RIGHT = "write sizes as 1M-1G, 1M-1G:4x, 1M-16M:+1M or 8,1K,4M"


def parse_sizes(text: str, *, option: str = "--sizes") -> tuple[int, ...]:
    """Return the sizes in bytes that `text` means, in its order and each once.

    `1M-1G` doubles, `1M-1G:4x` multiplies, `1M-16M:+1M` adds; the end of a range is always among the sizes. Commas
    join sizes and ranges. Suffixes are binary as in nccl-tests (`src/common.cu`, parsesize), in either case. Raises
    UsageError, which names `option`, the text and what would be right.
    """
    sizes: list[int] = []
    for part in text.split(","):
        try:
            for size in _part(part.strip()):
                if size not in sizes:
                    sizes.append(size)
                if len(sizes) > MOST_SIZES:
                    raise UsageError(f"more than {MOST_SIZES} sizes: use a larger step, as in 1M-1G:4x")
        except UsageError as error:
            raise UsageError(f"{option} {text!r}: {error}") from None
    return tuple(sizes)


def _part(part: str) -> Iterator[int]:
    if not part:
        raise UsageError(f"a size is missing; {_RIGHT}")
    whole, colon, step = part.partition(":")
    first, dash, last = whole.partition("-")
    if not dash:
        if colon:
            raise UsageError(f"the step {step!r} needs a range before it; {_RIGHT}")
        yield parse_size(first)
        return
    if not first or not last:
        raise UsageError(f"the range {whole!r} has no {'end' if first else 'start'}; {_RIGHT}")
    yield from _range(parse_size(first), parse_size(last), step if colon else "2x")


def _range(first: int, last: int, step: str) -> Iterator[int]:
    if last < first:
        raise UsageError(
            f"the end {format_size(last)} is below the start {format_size(first)}: "
            f"write {format_size(last)}-{format_size(first)}"
        )
    factor, summand = _step(step)
    size = first
    while size < last:
        yield size
        size = size * factor + summand
    yield last


def _step(step: str) -> tuple[int, int]:
    match = _FACTOR.fullmatch(step)
    if match and int(match[1]) > 1:
        return int(match[1]), 0
    if step.startswith("+"):
        return 1, parse_size(step[1:])
    raise UsageError(
        f"the step {step!r} is neither a factor of 2 or more like 4x nor a summand like +1M; {_RIGHT}"
    )


def parse_size(text: str) -> int:
    """Return one size in bytes: `8`, `1K`, `1.5G`, `4MiB`, `100B`. Raises UsageError for all else, 0 and part bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no size; {_RIGHT}")
    number, unit, bytes_suffix = match[1], match[2].upper(), (match[3] or "").upper()
    if unit and bytes_suffix == "B":
        raise UsageError(f"{text!r} could be decimal or binary: write {number}{unit} for {number} {unit}iB")
    if not unit and bytes_suffix == "IB":
        raise UsageError(f"{text!r} is no size; {_RIGHT}")
    size = Fraction(number) * _UNITS[unit]
    if size.denominator != 1:
        raise UsageError(f"{text!r} is {float(size):.12g} bytes, no whole number; use a smaller unit")
    if not 1 <= size <= LARGEST_BYTES:
        raise UsageError(f"{text!r} is out of range: expected 1 byte to {format_size(LARGEST_BYTES)}")
    return int(size)


def format_size(size_bytes: int) -> str:
    """Return the size exactly, in the largest binary unit that needs two decimals at most: `1M`, `1.5G`, `100B`.

    `parse_size` reads it back as the same number.
    """
    for unit in ("T", "G", "M", "K"):
        amount = Fraction(size_bytes, _UNITS[unit])
        if amount >= 1 and (amount * 100).denominator == 1:
            return f"{float(amount):.2f}".rstrip("0").rstrip(".") + unit
    return f"{size_bytes}B"


_DECIMALS = ((1000.0, 0), (100.0, 1), (1.0, 2), (0.0, 3))  # from this magnitude on, so many


def format_number(value: float) -> str:
    """Return a number for people: three or four digits that count, never an exponent."""
    decimals = next(decimals for least, decimals in _DECIMALS if abs(value) >= least)
    return f"{value:.{decimals}f}"


def parse_time_s(text: str, least_s: float, longest_s: float) -> float:
    """Return the seconds of a time as people write it: 90, 30s, 10m, 2h, 1d. Raises UsageError for all else."""
    match = _TIME.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else -1.0
    if not least_s <= seconds <= longest_s:
        raise UsageError(
            f"{text!r}: expected a time from {time_words(least_s)} to {time_words(longest_s)}, "
            "for example 30s, 10m or 2h"
        )
    return seconds


def time_words(seconds: float) -> str:
    """Return a time as `parse_time_s` reads it: 0.5s, 90s, 10m, 2h."""
    minute_s, hour_s = _SECONDS["m"], _SECONDS["h"]
    if seconds < 2 * minute_s and seconds != minute_s:
        return f"{seconds:g}s"
    return f"{seconds / minute_s:.3g}m" if seconds < hour_s else f"{seconds / hour_s:.3g}h"


def parse_part(text: str, least: float, most: float) -> float:
    """Return the part that so many per cent are, with or without the sign. Raises UsageError."""
    try:
        part = float(text.removesuffix("%")) / 100
    except ValueError:
        part = -1.0
    if not least <= part <= most:
        raise UsageError(
            f"{text!r}: expected per cent from {100 * least:g} to {100 * most:g}, for example 5%"
        )
    return part
