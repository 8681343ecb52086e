"""Split a stream of bytes into lines, in bounded memory, whatever the bytes are."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

LONGEST_LINE = 1 << 16  # of a longer one only this much of its beginning is kept
_UTF16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF8_MARK = codecs.BOM_UTF8


def batches(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of `chunks` without their line feeds, batch by batch, as `grep -n` counts them.

    A line that is longer than LONGEST_LINE is cut to that; what follows it up to its line feed is dropped. A last line
    without a line feed is a line. UTF-16 with a byte order mark (PowerShell's `>`) becomes UTF-8.
    """
    tail, is_cut = b"", False
    for chunk in in_utf8(chunks):
        lines = chunk.split(b"\n")
        if is_cut:
            if len(lines) == 1:
                continue
            lines[0] = tail
            is_cut = False
        else:
            lines[0] = tail + lines[0]
        tail = lines.pop()
        if len(tail) > LONGEST_LINE:
            tail, is_cut = tail[:LONGEST_LINE], True
        if lines:
            yield lines
    if tail:
        yield [tail]


def in_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same text without a byte order mark, in UTF-8 where its mark said UTF-16; other bytes stay."""
    rest = iter(chunks)
    start = b""
    for chunk in rest:
        start += chunk
        if len(start) >= len(_UTF8_MARK):
            break
    encoding = _UTF16_MARKS.get(start[:2])
    if encoding is None:
        yield start.removeprefix(_UTF8_MARK)
        yield from rest
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(start[2:]).encode("utf-8", "replace")
    for chunk in rest:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
