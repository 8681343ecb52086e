"""Bytes into lines: as grep counts them, bounded, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.logs.lines.split import LONGEST_LINE, batches


def lines(*chunks: bytes) -> list[bytes]:
    return [line for batch in batches(chunks) for line in batch]


@given(st.binary(max_size=2000), st.integers(1, 97))
def test_the_cut_into_chunks_makes_no_difference(data: bytes, size: int) -> None:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return  # a byte order mark means another text
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert lines(*chunks) == (expected if expected[-1] else expected[:-1])


def test_a_line_without_an_end_costs_no_more_than_its_limit() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield b"x" * 100_000
        yield b"\nnext\n"

    assert [len(line) for batch in batches(endless()) for line in batch] == [LONGEST_LINE, 4]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_powershell_writes_utf_16(encoding: str) -> None:
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b"\xfe\xff"
    data = mark + "NCCL WARN über\nzwei\n".encode(encoding)
    assert lines(data[:7], data[7:]) == ["NCCL WARN über".encode(), b"zwei"]
