"""Sizes: what users write is what nccl-tests would measure, and everything else is one clear sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.errors import UsageError
from ncclcheck.model.units import (
    LARGEST_BYTES,
    MOST_SIZES,
    format_number,
    format_size,
    parse_part,
    parse_size,
    parse_sizes,
    parse_time_s,
    time_words,
)

K, M, G = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1M-8M", (M, 2 * M, 4 * M, 8 * M)),
        ("1M-1G:4x", (M, 4 * M, 16 * M, 64 * M, 256 * M, G)),
        ("1M-4M:+1M", (M, 2 * M, 3 * M, 4 * M)),
        ("8,1K,4M", (8, K, 4 * M)),
        ("1.5G", (3 * G // 2,)),
        ("100B", (100,)),
        ("4MiB,4m", (4 * M,)),
        ("8, 1K-2K", (8, K, 2 * K)),
        ("5-5", (5,)),
    ],
)
def test_sizes_are_read_as_written(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "last"), [("1M-3M", 3 * M), ("1M-1000K", None), ("1-100:3x", 100), ("1K-2500:+1K", 2500)]
)
def test_the_end_of_a_range_is_always_measured(text: str, last: int | None) -> None:
    if last is None:
        with pytest.raises(UsageError, match="the end 1000K is below the start 1M: write 1000K-1M"):
            parse_sizes(text)
    else:
        assert parse_sizes(text)[-1] == last


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1M-", "has no end"),
        ("-1M", "has no start"),
        ("", "a size is missing"),
        ("1M,,2M", "a size is missing"),
        ("1MB", "write 1M for 1 MiB"),
        ("1e6", "'1e6' is no size"),
        ("0", "out of range"),
        ("99999T", "out of range"),
        ("1.3K", "no whole number"),
        ("1M:2x", "needs a range"),
        ("1M-2M:1x", "neither a factor"),
        ("1M-2M:+0", "out of range"),
        ("1-1G:+1", f"more than {MOST_SIZES} sizes"),
        ("\u0663", "is no size"),
        ("9" * 5000, "is no size"),
    ],
)
def test_anything_else_is_one_sentence_that_names_the_value(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        parse_sizes(text)
    assert str(caught.value).startswith(f"--sizes {text!r}: ")
    assert "\n" not in str(caught.value)


@given(st.integers(1, LARGEST_BYTES))
def test_a_formatted_size_reads_back_as_the_same_number(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text(alphabet="0123456789kKmMgGtTxXiBb.,:+- ", max_size=20))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        sizes = parse_sizes(text)
    except UsageError:
        return
    assert 1 <= len(sizes) <= MOST_SIZES
    assert all(1 <= size <= LARGEST_BYTES for size in sizes)


@pytest.mark.parametrize(
    ("size", "text"), [(100, "100B"), (K, "1K"), (1536, "1.5K"), (5 * G // 4, "1.25G"), (1025, "1025B")]
)
def test_sizes_are_written_exactly(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.000"), (0.119, "0.119"), (1.5, "1.50"), (480.27, "480.3"), (123456.7, "123457")],
)
def test_numbers_keep_the_digits_that_count(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("30s", 30.0), (" 10M ", 600.0), ("1.5h", 5400.0), ("1d", 86400.0)]
)
def test_times_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_time_s(text, 1.0, 1e6) == seconds
    assert parse_time_s(time_words(seconds), 1.0, 1e6) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "1e9", "2h30m", "0.5s", "99d"])
def test_what_is_no_time_or_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected a time from 1s to 2.78h"):
        parse_time_s(text, 1.0, 10_000.0)


def test_parts_are_per_cent() -> None:
    assert parse_part("5%", 0.02, 0.9) == parse_part("5", 0.02, 0.9) == 0.05
    for text in ("1%", "x", "91", "nan", "1e99"):
        with pytest.raises(UsageError, match="expected per cent from 2 to 90"):
            parse_part(text, 0.02, 0.9)
