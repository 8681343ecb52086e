"""Reads the pictures of the page back."""

from __future__ import annotations

import base64
import struct
import zlib


def rows_of(address: str) -> list[bytes]:
    """Return the points of a picture: numbers of its palette."""
    data = base64.b64decode(address.partition("base64,")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, dict[bytes, bytes]()
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + content),)
        parts[kind], at = content, at + 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    points = zlib.decompress(parts[b"IDAT"])
    return [points[row * (width + 1) + 1 : (row + 1) * (width + 1)] for row in range(height)]
