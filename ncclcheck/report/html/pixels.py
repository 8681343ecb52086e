"""A small PNG of coloured points, as an address that stands in the page itself (RFC 2083, RFC 2397)."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BITS, _PALETTE = 8, 3  # of a point; its value is a number of the palette
_HARDEST = 9  # of zlib


def png_address(rows: Sequence[bytes], palette: Sequence[tuple[int, int, int]]) -> str:
    """Return the picture: rows of equal length, of numbers of the palette (red, green, blue)."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), _BITS, _PALETTE, 0, 0, 0)
    colours = bytes(part for colour in palette for part in colour)
    points = zlib.compress(b"".join(b"\x00" + row for row in rows), _HARDEST)
    parts = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", points), (b"IEND", b""))
    data = _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
