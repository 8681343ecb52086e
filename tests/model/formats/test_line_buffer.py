"""Lines that come in pieces, and one that never ends."""

from __future__ import annotations

import pytest

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.line_buffer import LINE_LIMIT_BYTES, LineBuffer


def test_lines_come_whole_however_they_are_cut() -> None:
    lines = LineBuffer()
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o") == []
    assert lines.feed(b"\n\nthree\n") == [b"two", b"", b"three"]


def test_a_line_without_end_is_refused() -> None:
    lines = LineBuffer()
    assert lines.feed(bytes(LINE_LIMIT_BYTES)) == []
    with pytest.raises(DecodeError, match="more than"):
        lines.feed(b"x")
